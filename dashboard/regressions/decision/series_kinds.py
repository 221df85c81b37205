"""Which series may open a regression, and which of them are one measurement seen several ways."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol, TypeVar

from dashboard.judged_counters import ANY_INCREASE, LARGE_INCREASE, LARGE_RATIO, READS, WHOLE_READ
from dashboard.measured_kinds import MEAN_TIME, TIME, MeasuredLike, is_exact_counter
from dashboard.regressions.decision.ranges import Range

# One measurement seen several ways: the first name stands for the others.
MEMORY = ("device_memory", "peak_memory")

QUALITY = "quality"
WORSE, BETTER = "regression", "improvement"


class SeriesLike(MeasuredLike, Protocol):
    """A series as the rows and the facts have it."""

    @property
    def pk(self) -> int: ...
    @property
    def configuration_id(self) -> int: ...
    @property
    def phase(self) -> str: ...
    @property
    def headline(self) -> bool: ...
    @property
    def guarded(self) -> bool: ...


class ChangeLike(Protocol):
    @property
    def series(self) -> SeriesLike: ...
    @property
    def direction(self) -> str: ...
    @property
    def ratio(self) -> float | None: ...
    @property
    def before(self) -> float: ...
    @property
    def after(self) -> float: ...


class PlacedChange(ChangeLike, Protocol):
    @property
    def range(self) -> Range: ...


Placed = TypeVar("Placed", bound=PlacedChange)


def may_open_regression(change: ChangeLike) -> bool:
    """True for a change that opens a regression by itself; any other for the worse is evidence for one."""
    series = change.series
    if change.direction != WORSE:
        return False
    if not is_exact_counter(series):
        return series.headline or series.guarded
    if series.metric.name in ANY_INCREASE:
        return not series.phase or series.headline
    if series.metric.name == READS and not series.phase and change.after - change.before >= WHOLE_READ:
        return True
    named = series.metric.name in LARGE_INCREASE and not series.phase
    return (series.headline or named) and log_size(change) >= math.log(LARGE_RATIO)


def speedups_among(changes: Iterable[Placed]) -> list[Placed]:
    """The changes that made a step faster."""
    return [change for change in changes if change.direction == BETTER and change.series.metric.name in TIME]


def is_offset_by_speedup(change: PlacedChange, faster: Iterable[PlacedChange]) -> bool:
    """More calls that bought a faster step at the same commits are no regression."""
    if not is_exact_counter(change.series):
        return False
    return any(
        speedup.series.configuration_id == change.series.configuration_id
        and speedup.range.overlap(change.range)
        for speedup in faster
    )


def is_quality(series: SeriesLike) -> bool:
    return series.metric.kind == QUALITY


def is_same_measurement(first: SeriesLike, second: SeriesLike) -> bool:
    """True for one series, and for the step time and the throughput of the same configuration."""
    if first.pk == second.pk:
        return True
    times = first.metric.name in MEAN_TIME and second.metric.name in MEAN_TIME
    return times and first.phase == second.phase and first.configuration_id == second.configuration_id


def metric_family(series: SeriesLike) -> str:
    """What a series measures, however it is seen: step time and throughput are alike, and memory is."""
    name = series.metric.name
    return next((names[0] for names in (MEAN_TIME, MEMORY) if name in names), name)


def log_size(change: ChangeLike) -> float:
    """How far a value moved, as the logarithm of its ratio; infinite from zero or to it."""
    if not change.ratio or change.ratio <= 0:
        return math.inf
    return abs(math.log(change.ratio))
