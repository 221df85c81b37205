"""Values of pairs in one unit: 1 is the whole step that is suspected, 0 is nothing of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import cast

from dashboard.detection import EFFECT_FLOORS
from dashboard.detection.types import Kind
from dashboard.metric_scale import LEAST_NOISE, MetricScale

# Of few pairs an interval may reach beyond what a ratio can be written as.
FARTHEST = 700.0


@dataclass(frozen=True, slots=True)
class StepScale:
    """By logarithms, or plainly where a value isn't positive and for what is learned.

    `before` and `after` are on the metric's ratio scale. `level` is how large the values are, where they have
    no ratios.
    """

    metric: MetricScale
    before: float
    after: float
    logarithmic: bool
    level: float

    @classmethod
    def of_values(
        cls, metric: MetricScale, before: float, after: float, measured: Iterable[float]
    ) -> StepScale:
        """The unit is the step from `before` to `after`."""
        values = [metric.on_ratio_scale(value) for value in (before, after, *measured)]
        if metric.is_quality:
            # Whether a later value is 0 or less must not change how the ones before it were weighed.
            return cls(metric, before, after, logarithmic=False, level=max(abs(before), abs(after)))
        return cls(metric, values[0], values[1], min(values) > 0, abs(values[0]))

    @classmethod
    def without_step(cls, metric: MetricScale, worse: int, measured: Iterable[float]) -> StepScale:
        """The unit is a ratio of e, or, where values have no ratios, the metric's own.

        It lies towards the worse (1: larger values, -1: smaller ones): a repetition that something slowed
        counts up to a bound only.
        """
        values = [metric.on_ratio_scale(value) for value in measured]
        if min(values) > 0:
            return cls(metric, 1.0, math.exp(worse), logarithmic=True, level=1.0)
        return cls(metric, 0.0, float(worse), logarithmic=False, level=median(map(abs, values)))

    @property
    def step(self) -> float:
        """The unit, signed; as a logarithm where there is one."""
        return math.log(self.after / self.before) if self.logarithmic else self.after - self.before

    @property
    def noise(self) -> float:
        """The least deviation of a pair to believe in, in steps."""
        least = LEAST_NOISE if self.logarithmic else LEAST_NOISE * self.level
        return least / abs(self.step)

    def relevant_share(self, kind: str) -> float:
        """The smallest share of a step by logarithms that is relevant for this kind of metric."""
        floor = EFFECT_FLOORS[cast(Kind, kind)]
        return math.log1p(max(floor.long, floor.least / self.before)) / abs(self.step)

    def share_of_step(self, value: float) -> float:
        """How many steps a value lies above the level before, towards the worse."""
        scaled = self.metric.on_ratio_scale(value)
        return (math.log(scaled / self.before) if self.logarithmic else scaled - self.before) / self.step

    def ratio_of(self, share: float) -> float | None:
        """The ratio that a share of the step makes; None where values have none."""
        return self.effect_of(share) if self.logarithmic else None

    def effect_of(self, share: float) -> float:
        """What a share of the step makes: a ratio, or a difference where values have no ratios."""
        moved = share * self.step
        return math.exp(max(-FARTHEST, min(FARTHEST, moved))) if self.logarithmic else moved
