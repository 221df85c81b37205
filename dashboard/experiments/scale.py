"""Values of pairs, measured in the step that is suspected: 1 is the whole step, 0 is nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dashboard.metric_scale import MetricScale

# Two processes that do the same differ by this much at least, as the logarithm of their ratio.
LEAST_NOISE = 0.003


@dataclass(frozen=True, slots=True)
class StepScale:
    """By logarithms, or plainly where a value isn't positive; `before` and `after` on the metric's ratio
    scale.
    """

    metric: MetricScale
    before: float
    after: float
    logarithmic: bool

    @classmethod
    def of_values(
        cls, metric: MetricScale, before: float, after: float, measured: Iterable[float]
    ) -> StepScale:
        values = [metric.on_ratio_scale(value) for value in (before, after, *measured)]
        return cls(metric, values[0], values[1], logarithmic=min(values) > 0)

    @property
    def step(self) -> float:
        """The suspected step, signed; as a logarithm where there is one."""
        return math.log(self.after / self.before) if self.logarithmic else self.after - self.before

    @property
    def noise(self) -> float:
        """The least deviation of a pair to believe in, in steps."""
        least = LEAST_NOISE if self.logarithmic else LEAST_NOISE * abs(self.before)
        return least / abs(self.step)

    def share_of_step(self, value: float) -> float:
        """How many steps a value lies above the level before, towards the worse."""
        scaled = self.metric.on_ratio_scale(value)
        return (math.log(scaled / self.before) if self.logarithmic else scaled - self.before) / self.step

    def ratio_of(self, share: float | None) -> float | None:
        """The ratio that a share of the step makes; None where values have none."""
        return math.exp(share * self.step) if self.logarithmic and share is not None else None
