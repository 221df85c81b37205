"""The value of a metric as claims spell it, from whatever holds the single readings: of harness and site.

`scalar_reads:push` is a phase's metric, `phase_time:act+env` a sum over phases, `phase_share:act+env` their
share of a step, `seconds_per.episodes` the step's time by a count of the code.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import metrics
from .claim import PHASE_SHARE, SECONDS_PER

FindValue = Callable[[str, str | None], float | None]
"""The value of a metric by its name and phase; None where it was not measured."""

ADDED_KINDS = ("time", "counter")
"""Kinds of metrics whose values of several phases make a sum."""

WHOLES = {PHASE_SHARE: 1.0, "gpu_utilization": 100.0, "communication_overlap": 100.0}
"""What all of it is, of metrics that are parts of something. Phases of several threads may sum to more."""


def split_spelling(spelling: str) -> tuple[str, tuple[str, ...]]:
    """Return the metric's name and its phases: none is the whole step."""
    name, _, phases = spelling.partition(":")
    return name, tuple(phases.split("+")) if phases else ()


def is_derived(spelling: str) -> bool:
    """Whether the value is made of several readings, so that no metric has that name."""
    name, phases = split_spelling(spelling)
    return name == PHASE_SHARE or name.startswith(SECONDS_PER) or len(phases) > 1


def better_direction(spelling: str) -> str:
    """Return which direction is better."""
    metric = metrics.describe_metric(split_spelling(spelling)[0])
    return metric.better if metric is not None else "lower"


def reading_unit(spelling: str) -> str:
    """Return the unit of a metric that the table knows, or that is derived; empty for a share."""
    name, _ = split_spelling(spelling)
    metric = metrics.describe_metric(name)
    if metric is not None:
        return metric.unit
    return "" if name == PHASE_SHARE else "s"


def read_metric(spelling: str, find_value: FindValue) -> float | None:
    """Return the value; a counter that a phase has nothing of is 0, a time that it has not is unknown."""
    name, phases = split_spelling(spelling)
    if name.startswith(SECONDS_PER):
        count = find_value(f"count.{name.removeprefix(SECONDS_PER)}", None)
        step = find_value("step_time", None)
        return step / count if step is not None and count else None
    if name == PHASE_SHARE:
        step = find_value("step_time", None)
        known = _add_values([find_value("phase_time", phase) for phase in phases])
        return known / step if step and known is not None else None
    if not phases:
        return find_value(name, None)
    absent = 0.0 if find_value(name, None) is not None else None
    values = [find_value(name, phase) for phase in phases]
    return _add_values([absent if value is None else value for value in values])


def spelling_problem(spelling: str) -> str | None:
    """Return the problem with the phases of a metric that the table knows, or None."""
    name, phases = split_spelling(spelling)
    metric = metrics.describe_metric(name)
    if not all(phases):
        return f"{name} needs phases, write {name}:PHASE+PHASE"
    if len(phases) > 1 and metric is not None and metric.kind not in ADDED_KINDS:
        return f"{name} of several phases has no sum, write one phase"
    spellings = [f"{name}:{phase}" for phase in phases] or [spelling]
    return next((problem for part in spellings if (problem := metrics.phase_problem(part))), None)


def _add_values(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
