"""What a confirmed regression costs its project each week."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.models import Metric, Point, Regression

# What a week of training is proportional to, directly or inversely.
PROPORTIONAL_METRICS = ("step_time", "throughput", "projected_time")


@dataclass(frozen=True, slots=True)
class WeeklyCost:
    """Machine hours a week: what the project trains, and what the regression adds, with its interval."""

    hours: float
    extra: float
    interval: tuple[float, ...]
    on_gpu: bool


def weekly_cost(regression: Regression) -> WeeklyCost | None:
    """None for what isn't confirmed or isn't time, and where nobody said how much is trained."""
    hours = regression.project.training_hours_per_week
    metric = regression.series.metric
    proportional = metric.name in PROPORTIONAL_METRICS and not regression.series.phase
    if not hours or not proportional or regression.state != Regression.State.CONFIRMED:
        return None
    extra, *ends = [
        None if ratio is None else hours * (slowdown_ratio(ratio, metric) - 1)
        for ratio in ratio_with_interval(regression)
    ]
    if extra is None or extra <= 0:
        return None
    interval = tuple(sorted(end for end in ends if end is not None))
    return WeeklyCost(hours, extra, interval, has_gpu(regression))


def slowdown_ratio(ratio: float, metric: Metric) -> float:
    """How many times as long a step takes."""
    return ratio if metric.better == Metric.Better.LOWER else 1 / ratio


def ratio_with_interval(regression: Regression) -> list[float | None]:
    """The ratio and the ends of its interval, as they are shown everywhere."""
    ratios = (regression.ratio, regression.low, regression.high)
    return [ratio if ratio and ratio > 0 else None for ratio in ratios]


def has_gpu(regression: Regression) -> bool:
    """Whether the machine that measured it had one."""
    points = Point.objects.filter(series=regression.series_id, run__commit=regression.first_bad_id)
    fingerprint = points.order_by("-run_id").values_list("run__fingerprint", flat=True).first()
    return bool((fingerprint or {}).get("gpus"))
