"""A suspected step that only phases show: what an experiment's pairs say of these, beside the whole step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dashboard.detection.paired_parts import PartsEstimate, estimate_parts
from dashboard.detection.pairs import FEWEST_PAIRS, ShareEstimate
from dashboard.detection.segmentation import Floats
from dashboard.metric_scale import LEAST_NOISE
from dashboard.models import Experiment, ExperimentPair
from dashboard.phases.paths import is_in_phase

# As `PhaseSteps.as_json` has a size.
Size = list[float | None]


@dataclass(frozen=True, slots=True)
class PhaseSteps:
    """By how many suspected steps the phases grew; what they and the whole took of the base, in seconds.

    `step` is the suspected one, in seconds.
    """

    phases: tuple[str, ...]
    found: PartsEstimate
    phases_before: float
    whole_before: float
    step: float

    def as_json(self) -> dict[str, Any]:
        """As the reason of a verdict keeps it: `[ratio, low, high]` of the phases, and of the sum of all."""
        return {
            "code": "in phases",
            "phases": list(self.phases),
            "phase": self._size(self.found.parts, self.phases_before),
            "step": self._size(self.found.sum, self.whole_before),
        }

    def _size(self, estimate: ShareEstimate, before: float) -> Size:
        # A phase that is new grew from nothing.
        if before <= 0:
            return [None, None, None]
        ends = (estimate.share, estimate.low, estimate.high)
        return [None if end is None else 1 + end * self.step / before for end in ends]


def evaluate_phases(
    experiment: Experiment, undisturbed: Sequence[ExperimentPair], error: float
) -> PhaseSteps | None:
    """None where no phases are suspected, or the pairs don't have them."""
    suspected, before, after = experiment.phases_with_step, experiment.before, experiment.after
    if not suspected or before is None or after is None or after <= before:
        return None
    if len(undisturbed) < FEWEST_PAIRS or not all(pair.phases for pair in undisturbed):
        return None
    names = sorted({*suspected, *(phase for pair in undisturbed for phase in pair.phases)})
    base, head = (
        np.array([[pair.phases.get(phase, (0.0, 0.0))[side] for pair in undisturbed] for phase in names])
        for side in (0, 1)
    )
    rows = np.isin(names, suspected)
    step = after - before
    return PhaseSteps(
        phases=tuple(suspected),
        found=estimate_parts(base, head, rows, step, LEAST_NOISE, error),
        phases_before=middle_of_pairs(base[rows]),
        whole_before=middle_of_pairs(base),
        step=step,
    )


def middle_of_pairs(times: Floats) -> float:
    """The median over pairs of what phases (phases, n) took together."""
    return float(np.median(times.sum(axis=0)))


def time_in_phase(
    phases: Mapping[str, Sequence[float]], phase: str, side: int, *, nested: bool = True
) -> float | None:
    """Seconds per step of one side of a pair in a phase, with those nested in it or without; None of neither.

    `phases` hold their own time, as a pair keeps them.
    """
    inner = [
        times[side]
        for path, times in phases.items()
        if (is_in_phase(path, phase) if nested else path == phase)
    ]
    return sum(inner) if inner else None
