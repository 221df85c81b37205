"""Whether a machine has moved, as its sentinel says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median, stdev
from typing import cast

from dashboard import detection
from dashboard.detection import EFFECT_FLOORS
from dashboard.detection.types import Kind
from dashboard.models import Machine, Metric, Run, Sentinel, SentinelPoint, Series
from dashboard.sentinels.pinning import find_sentinel

JUDGED_METRIC = "step_time"
# Measurements on each side that tell a level; the noise between fewer than FEWEST_FOR_NOISE is assumed.
WINDOW_POINTS = 5
FEWEST_FOR_NOISE = 4
ASSUMED_NOISE = 0.02
LEAST_NOISE = 0.005
# The sentinel's points that are read at most.
NEWEST_POINTS = 400


@dataclass(frozen=True, slots=True)
class SentinelComparison:
    """How a sentinel's later measurements stand to its earlier ones, and which those are."""

    sentinel: Sentinel
    metric: str
    ratio: float
    low: float | None
    high: float | None
    after: datetime
    before: datetime
    # The step is outside noise, and large enough to matter for this kind of metric.
    moved: bool
    # Over 1 where it got worse, whichever way the metric goes.
    worse: float


def judge_sentinel(run: Run) -> Sentinel | None:
    """After a measurement: keep the newest step of its step time that two measurements agree on."""
    kept = Sentinel.objects.filter(points__run=run).distinct().first()
    if kept is None:
        return None
    points = untainted_points(kept, JUDGED_METRIC)
    series = detection.Series(
        [detection.Point(point.value, tuple(point.samples)) for point in points], better="lower", kind="time"
    )
    steps = detection.judge_series(series) if points else []
    if steps:
        last = steps[-1]
        kept.moved_after = points[last.index - 1].measured_at
        kept.moved_before = points[last.index].measured_at
        kept.ratio, kept.low, kept.high = last.ratio, last.low, last.high
    else:
        kept.moved_after = kept.moved_before = kept.ratio = kept.low = kept.high = None
    kept.save(update_fields=["moved_after", "moved_before", "ratio", "low", "high"])
    return kept


def untainted_points(sentinel: Sentinel, metric: str) -> list[SentinelPoint]:
    """Untainted, oldest first."""
    points = sentinel.points.filter(metric__name=metric, tainted=False)
    return list(points.order_by("-measured_at", "-pk")[:NEWEST_POINTS])[::-1]


def compare_between(
    series: Series, machine: Machine | int, since: datetime, until: datetime
) -> SentinelComparison | None:
    """How the sentinel stood after `until` to how it stood before `since`.

    None where there is none, or it wasn't measured on both sides.
    """
    sentinel = find_sentinel(series.configuration_id, machine)
    if sentinel is None:
        return None
    name = series.metric.name
    if not sentinel.points.filter(metric__name=name).exists():
        if series.metric.kind not in (Metric.Kind.TIME, Metric.Kind.RATE):
            return None
        name = JUDGED_METRIC
    points = untainted_points(sentinel, name)
    old = [point for point in points if point.measured_at <= since][-WINDOW_POINTS:]
    new = [point for point in points if point.measured_at >= until][:WINDOW_POINTS]
    if not old or not new:
        return None
    metric = Metric.objects.get(pk=old[0].metric_id)
    return compare_points(sentinel, metric, old, new)


def compare_points(
    sentinel: Sentinel, metric: Metric, old: Sequence[SentinelPoint], new: Sequence[SentinelPoint]
) -> SentinelComparison:
    noise = noise_between([metric.on_ratio_scale(point.value) for point in old])
    found = detection.compare_samples(all_samples(old, metric), all_samples(new, metric), noise)
    floor = EFFECT_FLOORS[cast(Kind, metric.kind)].long
    relevant = found.ratio > 0 and abs(math.log(found.ratio)) >= math.log1p(floor)
    return SentinelComparison(
        sentinel=sentinel,
        metric=metric.name,
        ratio=found.ratio,
        low=found.low,
        high=found.high,
        after=old[-1].measured_at,
        before=new[0].measured_at,
        moved=relevant and found.verdict in ("higher", "lower"),
        worse=found.ratio if metric.better == Metric.Better.LOWER or not found.ratio else 1 / found.ratio,
    )


def all_samples(points: Sequence[SentinelPoint], metric: Metric) -> list[float]:
    return [metric.on_ratio_scale(sample) for point in points for sample in (point.samples or [point.value])]


def noise_between(values: Sequence[float]) -> float:
    """The relative spread between measurements of the same code; assumed where few are known."""
    level = median(values)
    if len(values) < FEWEST_FOR_NOISE or not level:
        return ASSUMED_NOISE
    return max(LEAST_NOISE, stdev(values) / abs(level))
