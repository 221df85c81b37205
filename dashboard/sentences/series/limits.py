"""Limits of a manifest in words."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.models import Limit, Regression, SeriesLatest
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.metric_labels import metric_words


def format_bounds(
    minimum: float | None, maximum: float | None, unit: str, digits: int = numbers.DIGITS
) -> str:
    """`at least 80 %`, `at most 10 ms`, or both."""
    bounds = [
        f"at {word} {numbers.format_quantity(value, unit, digits)}"
        for word, value in (("least", minimum), ("most", maximum))
        if value is not None
    ]
    return " and ".join(bounds)


def format_latest_limit(latest: SeriesLatest) -> str:
    """The limit of a series that has one, as its newest run found it."""
    limit, unit = latest.limit, latest.series.metric.unit
    return format_bounds(limit.minimum, limit.maximum, unit, _latest_digits(latest)) if limit else ""


def format_latest_crossing(latest: SeriesLatest) -> str:
    """The value of a series whose newest run crossed its limit."""
    return numbers.format_quantity(latest.value, latest.series.metric.unit, _latest_digits(latest))


def _latest_digits(latest: SeriesLatest) -> int:
    limit = latest.limit
    if limit is None or not limit.crossed:
        return numbers.DIGITS
    return numbers.crossing_digits(latest.value, limit.violated_bound, latest.series.metric.unit)


def violation_text(limit: Limit) -> str:
    """`GPU utilization is 71 %, its limit is at least 80 %`; of another case than its regression's with that
    case: `GPU utilization of snake_dqn is ...`."""
    unit, bound = limit.series.metric.unit, limit.violated_bound
    least, most = (bound, None) if limit.value < bound else (None, bound)
    name = metric_words(limit.series)
    if limit.regression and is_of_other_case(limit, limit.regression):
        name = f"{name} of {limit.series.case}"
    digits = numbers.crossing_digits(limit.value, bound, unit)
    value = numbers.format_quantity(limit.value, unit, digits)
    return f"{name} is {value}, its limit is {format_bounds(least, most, unit, digits)}"


def violations_headline(limits: Sequence[Limit], regression: Regression) -> str:
    """`GPU utilization 71 % (limit 80 %) and 2 more limits`: what a title has room for.

    The first is of the regression's own case, which stands behind all that a title says; where none is, the
    case is named here.
    """
    first = min(limits, key=lambda limit: is_of_other_case(limit, regression))
    unit = first.series.metric.unit
    digits = numbers.crossing_digits(first.value, first.violated_bound, unit)
    value, bound = (
        numbers.format_quantity(number, unit, digits) for number in (first.value, first.violated_bound)
    )
    case = f" in {first.series.case}" if is_of_other_case(first, regression) else ""
    more = len(limits) - 1
    others = f" and {more} more limit{'s' if more > 1 else ''}" if more else ""
    return f"{metric_words(first.series)} {value} (limit {bound}){case}{others}"


def is_of_other_case(limit: Limit, regression: Regression) -> bool:
    """A commit that slows one case and has another cross its limit is reported as one regression."""
    return limit.series.configuration.case_id != regression.series.configuration.case_id
