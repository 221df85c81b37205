"""Limits of a manifest in words."""

from __future__ import annotations

from dashboard.models import Limit, SeriesLatest
from dashboard.sentences import numbers


def format_bounds(minimum: float | None, maximum: float | None, unit: str) -> str:
    """`at least 80 %`, `at most 10 ms`, or both."""
    bounds = [
        f"at {word} {numbers.format_quantity(value, unit)}"
        for word, value in (("least", minimum), ("most", maximum))
        if value is not None
    ]
    return " and ".join(bounds)


def format_limit(limit: Limit, unit: str) -> str:
    return format_bounds(limit.minimum, limit.maximum, unit)


def format_latest_limit(latest: SeriesLatest) -> str:
    """The limit of a series that has one, as its newest run found it."""
    return format_limit(latest.limit, latest.series.metric.unit) if latest.limit else ""


def violation_text(limit: Limit) -> str:
    """`gpu_utilization is 71 %, its limit is at least 80 %`."""
    unit, bound = limit.series.metric.unit, limit.violated_bound
    least, most = (bound, None) if limit.value < bound else (None, bound)
    value = numbers.format_quantity(limit.value, unit)
    return f"{limit.series} is {value}, its limit is {format_bounds(least, most, unit)}"
