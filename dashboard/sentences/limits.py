"""Limits of a manifest in words."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.models import Limit, SeriesLatest
from dashboard.sentences import labels, numbers


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
    """`GPU utilization is 71 %, its limit is at least 80 %`."""
    unit, bound = limit.series.metric.unit, limit.violated_bound
    least, most = (bound, None) if limit.value < bound else (None, bound)
    value = numbers.format_quantity(limit.value, unit)
    return f"{labels.metric_words(limit.series)} is {value}, its limit is {format_bounds(least, most, unit)}"


def violations_headline(limits: Sequence[Limit]) -> str:
    """`GPU utilization 71 % (limit 80 %) and 2 more limits`: what a title has room for."""
    first, unit = limits[0], limits[0].series.metric.unit
    value, bound = (numbers.format_quantity(number, unit) for number in (first.value, first.violated_bound))
    more = len(limits) - 1
    others = f" and {more} more limit{'s' if more > 1 else ''}" if more else ""
    return f"{labels.metric_words(first.series)} {value} (limit {bound}){others}"
