"""The phases of an experiment: those of both sides, as its pairs measured them beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from dashboard.detection.paired_steps import steps_hold_mean
from dashboard.models import Experiment, ExperimentPair, Metric
from dashboard.phases import sweeps

# A typical step is no longer than the mean one, but for what both are uncertain by.
MOST_OF_MEAN = 1.05


@dataclass(frozen=True, slots=True)
class PairedPhases:
    """Own time by phase: the medians of an experiment's undisturbed pairs.

    Seconds per step, of a typical one where single steps tell (`by_steps`). Of what is read off a sweep they
    are those at its largest value, `at` says of what, and `deltas` are each phase's part in the difference.
    `after` is `before` with the median of the pairs' differences: from pair to pair the machine may change
    its speed, within a pair it is the same for both sides. What one side lacks took 0 there.
    """

    pairs: int
    before: Mapping[str, float]
    after: Mapping[str, float]
    deltas: Mapping[str, float]
    at: str = ""
    by_steps: bool = False


def paired_phases(experiment: Experiment) -> PairedPhases | None:
    """None where it isn't one of time, or its pairs have no phases."""
    if experiment.metric.kind not in (Metric.Kind.TIME, Metric.Kind.RATE):
        return None
    kept = [pair for pair in experiment.pairs.all() if not pair.disturbed]
    if kept and all(pair.sweeps for pair in kept):
        return _phases_of_sweeps(experiment, kept)
    if not kept or not all(pair.phases for pair in kept) or experiment.metric.is_exponent:
        return None
    return phases_of_pairs(kept)


def phases_of_pairs(kept: Sequence[ExperimentPair]) -> PairedPhases:
    """By undisturbed pairs that have phases, one at least."""
    by_steps = can_compare_typical_steps(kept)
    before, after = _median_phases([pair.typical_phases if by_steps else pair.phases for pair in kept])
    deltas = {phase: after[phase] - before[phase] for phase in before}
    return PairedPhases(len(kept), before, after, deltas, by_steps=by_steps)


def can_compare_typical_steps(kept: Sequence[ExperimentPair]) -> bool:
    """Whether what all phases took more in typical steps is what they took more by their means, and a typical
    step was left alone.

    What a side waited for a processor is taken off its means, and can't be off a step. Where most steps were
    interrupted their median has it, and is longer than the mean.
    """
    if not all(pair.typical_phases for pair in kept):
        return False
    means, typical = (
        np.array([np.sum(list(phases.values()), axis=0) for phases in by_pair])
        for by_pair in ([pair.phases for pair in kept], [pair.typical_phases for pair in kept])
    )
    was_interrupted = (np.median(typical, axis=0) > MOST_OF_MEAN * np.median(means, axis=0)).any()
    return not was_interrupted and steps_hold_mean(np.diff(means)[:, 0], np.diff(typical)[:, 0])


def _phases_of_sweeps(experiment: Experiment, kept: Sequence[ExperimentPair]) -> PairedPhases | None:
    """By the sweeps of the pairs; None where no phase explains the metric."""
    swept = kept[0].sweeps
    reading = sweeps.make_reading(experiment, swept["parameter"], swept["amount"])
    if reading is None:
        return None
    sides = [[reading.times(pair.sweeps[side]) for side in ("base", "head")] for pair in kept]
    compared = [found for base, head in sides if (found := sweeps.compare_sweeps(reading, base, head))]
    if len(compared) < len(kept):
        return None
    parts = [sweep.parts for sweep in compared]
    names = sorted({phase for part in parts for phase in part})
    deltas = {phase: float(median(part.get(phase, 0.0) for part in parts)) for phase in names}
    before, after = _median_phases([sweep.at_largest for sweep in compared])
    return PairedPhases(len(kept), before, after, deltas, compared[0].at)


def _median_phases(
    pairs: Sequence[Mapping[str, Sequence[float]]],
) -> tuple[dict[str, float], dict[str, float]]:
    """Before and after by phase, of pairs that hold both."""
    values = {
        phase: [pair.get(phase, (0.0, 0.0)) for pair in pairs]
        for phase in sorted({phase for pair in pairs for phase in pair})
    }
    before = {phase: float(median(base for base, _ in both)) for phase, both in values.items()}
    moved = {phase: float(median(head - base for base, head in both)) for phase, both in values.items()}
    return before, {phase: max(0.0, before[phase] + moved[phase]) for phase in values}
