"""Whether a head is worse than its base by a floor or more: what a pull request is judged by.

Three answers. Worse: the interval lies wholly on the worse side, and the difference is the floor or more. Not
worse: the interval's worse end is below the floor. Else pairs don't tell yet, or never do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, cast

from dashboard.detection import EFFECT_FLOORS, pairs
from dashboard.detection.paired_steps import agreed_estimate
from dashboard.detection.types import Kind
from dashboard.experiments.scale import StepScale
from dashboard.experiments.single_steps import LARGEST_LOG_STEP
from dashboard.measured_kinds import COUNTER
from dashboard.metric_scale import MetricScale

WORSE, NOT_WORSE, OPEN = "worse", "not worse", ""
# What is learned differs from repetition to repetition by far more than a step's time does: an experiment
# doesn't end before so many pairs, unless they tell earlier that the head learns as well.
GUARDING_PAIRS = 8
QUALITY = "quality"
# What is weighed beside the metric that is judged.
GUARDED_KINDS = ("memory", QUALITY)

Values = tuple[float, float]


@dataclass(frozen=True, slots=True)
class MeasuredMetric(MetricScale):
    """A metric as pairs describe it."""

    name: str
    unit: str
    better: str
    kind: str

    @property
    def worse(self) -> int:
        """Towards where it is worse: 1 for larger values, -1 for smaller ones."""
        return 1 if self.better == "lower" else -1


@dataclass(frozen=True, slots=True)
class BoundedDifference:
    """What pairs (base, head) say of one metric.

    `middle`, `low` and `high` are how much worse the head is: logarithms of ratios, or differences in the
    metric's unit where values have no ratios; negative where it is better, None while too few pairs tell.
    `floor` is on the same scale. `by_steps`: whether single steps tell it, or else the means of the pairs.
    An exact counter has no pairs and no width; `is_offset`: it grew, and made a step faster.
    """

    metric: MeasuredMetric
    pairs: int
    logarithmic: bool
    floor: float
    middle: float
    low: float | None
    high: float | None
    by_steps: bool = False
    is_offset: bool = False

    @property
    def is_counted(self) -> bool:
        return self.metric.kind == COUNTER

    @property
    def verdict(self) -> str:
        if self.low is None or self.high is None:
            return OPEN
        if self.is_offset:
            return NOT_WORSE
        if self.low > 0 and self.middle >= self.floor:
            return WORSE
        # Where all values are 0 the floor is 0 as well.
        return NOT_WORSE if self.high < self.floor or self.high <= 0 else OPEN

    @property
    def is_surely_worse(self) -> bool:
        """By the floor or more, wherever in its interval it lies: more pairs don't take that back."""
        return self.verdict == WORSE and self.low is not None and self.low >= self.floor

    @property
    def is_better(self) -> bool:
        """Surely, by the floor or more."""
        return self.high is not None and self.high < 0 and -self.middle >= self.floor

    @property
    def may_be_better(self) -> bool:
        """More pairs may still show that it is, by the floor or more."""
        return self.low is None or self.low <= -self.floor

    @property
    def smallest_visible(self) -> float | None:
        """How large a difference would have been seen; None while too few pairs tell anything."""
        return None if self.low is None or self.high is None else max(self.floor, (self.high - self.low) / 2)


def bound_metric(
    metric: MeasuredMetric,
    measured: Sequence[Values],
    floor: float,
    error: float,
    steps: pairs.ShareEstimate | None = None,
) -> BoundedDifference | None:
    """By the undisturbed pairs; None without any.

    `floor` is a part of the base's value; the least difference of the metric's kind takes its place where
    that is larger. `steps`: what their single steps say, as the logarithm of how much worse the head is.
    """
    if not measured:
        return None
    scale = StepScale.without_step(metric, metric.worse, [value for pair in measured for value in pair])
    base, head = ([scale.share_of_step(pair[side]) for pair in measured] for side in (0, 1))
    # What slows a repetition doesn't make it learn less: seeds that learn nothing are no accidents.
    share = pairs.estimate_share(base, head, scale.noise, error, slowed=not metric.is_quality)
    estimate = agreed_estimate(share, steps, error, LARGEST_LOG_STEP)
    least = smallest_relevant(metric, [value for value, _ in measured], floor, scale)
    return BoundedDifference(
        metric,
        pairs=estimate.pairs,
        logarithmic=scale.logarithmic,
        floor=least,
        middle=estimate.share,
        low=estimate.low,
        high=estimate.high,
        by_steps=estimate is not share,
    )


def smallest_relevant(metric: MeasuredMetric, base: Sequence[float], floor: float, scale: StepScale) -> float:
    """On the pairs' scale: `floor` as a part of the level, or the least difference of the metric's kind."""
    least = EFFECT_FLOORS[cast(Kind, metric.kind)].least
    if not scale.logarithmic:
        return max(floor * scale.level, least)
    return math.log1p(max(floor, least / median(base))) if least else math.log1p(floor)


def bound_others(
    others: Sequence[Mapping[str, Mapping[str, Any]]], floor: float, error: float
) -> list[BoundedDifference]:
    """Of the metrics that all pairs have beside the one that is weighed, each by its kind's floor.

    `others`: of the undisturbed pairs; `floor` is the least that any metric has.
    """
    names = sorted(set.intersection(*(set(pair) for pair in others))) if others else []
    bounded = []
    for name in names:
        newest = others[-1][name]
        metric = MeasuredMetric(name, newest["unit"], newest["better"], newest["kind"])
        values = [(pair[name]["base"], pair[name]["head"]) for pair in others]
        least = max(floor, EFFECT_FLOORS[cast(Kind, metric.kind)].long)
        if found := bound_metric(metric, values, least, error):
            bounded.append(found)
    return bounded


def waits_for_quality(others: Sequence[BoundedDifference], undisturbed: int) -> bool:
    """Whether more pairs may still tell that the head learns worse."""
    learned = [bounded for bounded in others if bounded.metric.kind == QUALITY]
    return undisturbed < GUARDING_PAIRS and any(bounded.verdict == OPEN for bounded in learned)
