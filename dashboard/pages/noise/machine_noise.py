"""How noisy a case's runs are on a machine, and the smallest step that they and an experiment would show."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from dashboard import detection
from dashboard.detection.provable_effect import provable_by_either
from dashboard.detection.smallest_effect import NoiseSource, RunNoise, noise_and_effects
from dashboard.detection.types import Better, Kind
from dashboard.models import Case, Machine
from dashboard.querysets.noise import REMEMBERED, MeasuredPoints, PairSpread

# Fewer values of one machine tell nothing of its noise.
ENOUGH_VALUES = 6
# After how many runs of a new level the smallest step is reported, and what an experiment may take.
SOON, LATER = 2, 10
EXPERIMENT_SECONDS = 600.0
# A case whose steps of this size aren't found in LATER runs is too noisy to be worth its time.
TOO_NOISY = 0.2


@dataclass(frozen=True, slots=True)
class MachineNoise:
    """What one case's runs on one machine would show, in parts of their level.

    All are None where that isn't known, with fewer than ENOUGH_VALUES for instance. `soon` and `later`: the
    smallest step after so many runs of a new level; `proven`: by an experiment of ten minutes, as the newest
    one there suggests. `source`: what most of the noise is. `series` is the one whose values these are.
    """

    series: int
    case: Case
    project: str
    quick: bool
    machine: Machine
    values: int
    newest: datetime | None
    age_days: int
    noise: float | None = None
    source: NoiseSource | None = None
    soon: float | None = None
    later: float | None = None
    proven: float | None = None
    experiment: int | None = None

    @property
    def is_too_noisy(self) -> bool:
        return self.noise is not None and (self.later is None or self.later > TOO_NOISY)


def measure_all(measured: Iterable[MeasuredPoints], now: datetime) -> list[MachineNoise]:
    """The noisiest first; at last those of which too little is known."""
    found = [measure_noise(points, now) for points in measured]
    return sorted(found, key=lambda row: (-(row.noise or 0.0), str(row.case), row.machine.name))


def measure_noise(measured: MeasuredPoints, now: datetime) -> MachineNoise:
    about = (measured.series, measured.case, measured.project, measured.quick, measured.machine)
    age = (now - measured.newest).days if measured.newest else 0
    known = (*about, len(measured.points), measured.newest, age)
    if len(measured.points) < ENOUGH_VALUES:
        return MachineNoise(*known)
    noise, effects = estimate_effects(
        measured.points, measured.judged, measured.better, measured.kind, measured.exact
    )
    if noise is None:
        return MachineNoise(*known)
    return MachineNoise(
        *known,
        noise=noise.deviation,
        source=noise.source,
        soon=shown_effect(effects[0], measured.better),
        later=shown_effect(effects[1], measured.better),
        proven=shown_effect(proven_effect(measured.spread), measured.better) if measured.spread else None,
        experiment=measured.spread.experiment if measured.spread else None,
    )


@lru_cache(REMEMBERED)
def estimate_effects(
    points: tuple[detection.Point, ...], judged: int, better: Better, kind: Kind, exact: bool
) -> tuple[RunNoise | None, list[float]]:
    """The noise of these points, and the smallest step that is found after SOON and after LATER runs, where
    `judged` points are judged with them."""
    series = detection.Series(points, better=better, kind=kind, exact=exact)
    return noise_and_effects(series, (SOON, LATER), judged)


def proven_effect(spread: PairSpread) -> float:
    """The smallest step that an experiment of ten minutes would prove, by pairs like these."""
    return provable_by_either(spread.deviation, spread.steps, int(EXPERIMENT_SECONDS / spread.seconds))


def shown_effect(effect: float, better: Better) -> float | None:
    """A step for the worse of a metric with a ratio, as a part of the level; None of one that isn't found."""
    return towards_worse(effect, better) if math.isfinite(effect) else None


def towards_worse(effect: float, better: Better) -> float:
    """Of a relative rise the fall that undoes it, where more is better: no throughput falls by over 100 %."""
    return effect / (1 + effect) if better == "higher" and math.isfinite(effect) else effect
