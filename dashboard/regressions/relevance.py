"""Which changes may open a regression, and which of them speaks for it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from django.db.models import Q

from dashboard.models import Change, Metric, Series

# Exact counters that are judged beside the headline series, though only as a whole, never per phase.
ANY_INCREASE = ("synchronisations", "host_device_copies", "copied_bytes")
LARGE_INCREASE = ("function_calls", "tensor_operations")
LARGE = 1.05

# One measurement seen several ways: the first name speaks for the others.
MEAN_TIME = ("step_time", "throughput")
TIME = (*MEAN_TIME, "step_time_p99")
MEMORY = ("device_memory", "peak_memory")

JUDGED = Q(headline=True) | Q(exact=True, phase="", metric__name__in=ANY_INCREASE + LARGE_INCREASE)


def speaks(change: Change) -> bool:
    """May this change open a regression by itself? One for the worse that may not is evidence for another."""
    series = change.series
    if change.direction != Change.Direction.REGRESSION:
        return False
    if not is_exact_counter(series):
        return series.headline
    if series.metric.name in ANY_INCREASE:
        return not series.phase or series.headline
    named = series.metric.name in LARGE_INCREASE and not series.phase
    return (series.headline or named) and size(change) >= math.log(LARGE)


def is_exact_counter(series: Series) -> bool:
    return series.exact and series.metric.kind == Metric.Kind.COUNTER


def is_time(series: Series) -> bool:
    return series.metric.name in TIME


def siblings(one: Series, other: Series) -> bool:
    """Are both series measured by the same runs?"""
    return all(
        getattr(one, name) == getattr(other, name) for name in ("case_id", "version", "pool_id", "quick")
    )


def one_measurement(one: Series, other: Series) -> bool:
    """Are both one series, or the step time and the throughput of the same runs?"""
    names = (one.metric.name, other.metric.name)
    same = all(name in MEAN_TIME for name in names) and one.phase == other.phase
    return one == other or (same and siblings(one, other))


def family(series: Series) -> str:
    """What a series measures, however it is seen: step time and throughput are alike, and memory is."""
    name = series.metric.name
    return next((names[0] for names in (MEAN_TIME, MEMORY) if name in names), name)


def size(change: Change) -> float:
    """How far a value moved, as the logarithm of its ratio; infinite from zero or to it."""
    if not change.ratio or change.ratio <= 0:
        return math.inf
    return abs(math.log(change.ratio))


def rank(change: Change) -> tuple[int, int, float]:
    """Smaller speaks first: time (step_time, which phases add up to), memory, other headlines, counters."""
    series = change.series
    name = series.metric.name
    for family, names in enumerate((TIME, MEMORY)):
        if name in names:
            return (family, names.index(name), -size(change))
    return (3 if is_exact_counter(series) else 2, 0, -size(change))


def headline(changes: Sequence[Change]) -> Change:
    """The change that speaks for all (at least one): time, unless memory moved more."""
    first, *others = sorted(changes, key=lambda change: (rank(change), change.series_id))
    heavier = next((other for other in others if other.series.metric.name in MEMORY), None)
    if is_time(first.series) and heavier and size(heavier) > size(first):
        return heavier
    return first
