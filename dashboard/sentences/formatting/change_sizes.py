"""How large a change is, in words: as a percentage, a difference, or from which level to which."""

from __future__ import annotations

from typing import TypeGuard

from dashboard.measured_kinds import is_exact_counter
from dashboard.metric_scale import NamedScale
from dashboard.models import Change, Experiment, ExperimentPair, Metric, Regression
from dashboard.sentences.formatting import numbers


def is_worse(change: Change) -> bool:
    return change.direction == Change.Direction.REGRESSION


def shown_change(change: Change) -> Regression | Change:
    """What says the size of a change: in the regression's own series the regression, whose size pairs may
    have found, so that a step has one size everywhere."""
    regression = change.regression
    if regression is None or regression.series_id != change.series_id:
        return change
    regression.series = change.series
    return regression


def is_small_step(change: Change) -> bool:
    """True for one of several small steps of a counter of which its regression tells as one."""
    gradual = change.regression is not None and change.regression.came_gradually
    return gradual and is_exact_counter(change.series)


def shown_step(change: Change) -> Regression | Change:
    """What says the size of a step at its own commit."""
    return change if is_small_step(change) else shown_change(change)


# The level of a quality that no run reports.
NOT_REPORTED = "none"
# What was measured by pairs, or found in a series.
Paired = Experiment | ExperimentPair
Sized = Regression | Change | Paired


def metric_of(item: Sized) -> Metric:
    if isinstance(item, ExperimentPair):
        return item.experiment.metric
    return item.metric if isinstance(item, Experiment) else item.series.metric


def format_change(item: Sized) -> str:
    """`+38 % [35, 41]`, or from what to what where the old level was 0; of an exponent `+0.42 [0.38, 0.45]`.

    Of pairs of values without ratios `+12.3 kB/1000 steps [10.1, 14.5]`, of levels that may be 0 or less
    `+12.3 kB/1000 steps`. The interval of what repeats exactly has no width and is left out.
    """
    if is_shown_as_difference(item):
        return format_change_size(item)
    if item.ratio is None:
        return _format_measured_difference(item) if isinstance(item, Paired) else format_levels(item)
    if metric_of(item).is_exponent:
        interval = numbers.format_exponent_interval(item.low, item.high)
    else:
        interval = numbers.format_percent_interval(item.low, item.high)
        if interval == numbers.format_percent_interval(item.ratio, item.ratio):
            interval = ""
    return f"{format_change_size(item)} {interval}".strip()


def _format_measured_difference(item: Paired) -> str:
    """Empty where the pairs don't tell yet."""
    if item.difference is None:
        return ""
    if isinstance(item, Experiment) and item.learning.get("unreported"):
        # What counts as lost is no number that was measured.
        seeds = numbers.format_count(item.learning["seeds"], "seed")
        return f"none reported in {item.learning['unreported']} of {seeds}"
    unit = metric_of(item).unit
    text = numbers.format_signed_quantity(item.difference, unit)
    if item.difference_low == item.difference_high:
        return text
    ends = (item.difference_low, item.difference_high)
    return f"{text} {numbers.format_interval(*ends, unit)}".strip()


def format_change_size(item: Sized) -> str:
    """`+38 %`, or `+0.42` of an exponent: its size without the interval; of a quality its levels."""
    if is_shown_as_difference(item):
        before, after = shown_levels(item)
        return numbers.format_signed_quantity(after - before, item.series.metric.unit)
    if metric_of(item).is_exponent and item.ratio is not None:
        return numbers.format_exponent_difference(item.ratio)
    if item.ratio is None and isinstance(item, Regression | Change) and item.before:
        return format_levels(item)
    return numbers.format_percent_change(item.ratio)


def is_shown_as_difference(item: Sized) -> TypeGuard[Regression | Change]:
    """True of what may be 0 or less, such as the growth of memory; a quality is described by its levels."""
    metric = metric_of(item)
    return isinstance(item, Regression | Change) and metric.has_sign and not metric.is_quality


def describe_movement(metric: str, unit: str, before: float, after: float) -> str:
    """From one value to another: `+3.1 %`; of an exponent, and of what may be 0 or less, the difference."""
    scale = NamedScale(metric)
    if scale.lacks_ratio(before, after):
        return numbers.format_signed_quantity(after - before, unit)
    ratio = scale.ratio(before, after)
    if scale.is_exponent and ratio is not None:
        return numbers.format_exponent_difference(ratio)
    return numbers.format_percent_change(ratio)


def format_levels(item: Regression | Change) -> str:
    """`1.23 ms → 1.70 ms`: from which level to which; of a quality that isn't reported `9.3 → none`."""
    before, after = (numbers.format_quantity(level, item.series.metric.unit) for level in shown_levels(item))
    if isinstance(item, Change) and item.was_unreported:
        before = NOT_REPORTED
    return f"{before} → {NOT_REPORTED if item.is_unreported else after}"


def shown_levels(item: Regression | Change) -> tuple[float, float]:
    """The levels before and after that agree with the size that is reported: of a regression that pairs sized
    theirs, else those of the points."""
    if isinstance(item, Regression):
        return item.level_before, item.level_after
    return item.before, item.after
