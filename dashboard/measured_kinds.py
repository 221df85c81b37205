"""What a series measures: a time of a step, or a counter that repeats exactly."""

from __future__ import annotations

from typing import Protocol

# One measurement seen several ways: the first name stands for the others.
MEAN_TIME = ("step_time", "throughput")
TIME = (*MEAN_TIME, "step_time_p99")

COUNTER = "counter"
# Kinds of metrics that are read off a clock: a busy machine moves them.
CLOCKED_KINDS = ("time", "rate")


class MetricLike(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...


class MeasuredLike(Protocol):
    """Of a series what says its kind."""

    @property
    def metric(self) -> MetricLike: ...
    @property
    def exact(self) -> bool: ...


def is_exact_counter(series: MeasuredLike) -> bool:
    return series.exact and series.metric.kind == COUNTER


def is_time(series: MeasuredLike) -> bool:
    return series.metric.name in TIME
