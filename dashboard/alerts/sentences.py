"""What a regression says in words: the first line of every message."""

from __future__ import annotations

from typing import Any

from dashboard.models import Metric, Regression
from dashboard.repositories.history import DETACHED

CALL_COUNT_RATIO = 1.2


def regression_title(regression: Regression) -> str:
    """`step time +38 % [35, 41] since abc1234567 “subject”; replay/sample explains 92 %; ...`."""
    # A limit alone has no change behind it: the bound is all there is to say.
    changes = [regression.limit] if regression.limit else []
    if not regression.limit or regression.changes.exists():
        changes.append(describe_metric_change(regression))
    head = ", ".join(changes)
    if regression.names_commit:
        parts = [f"{head} since {describe_culprit(regression)}", describe_phase(regression)]
        parts.append(describe_suspect(regression))
    else:
        parts = [head, describe_cause(regression), describe_phase(regression)]
    return "; ".join(part for part in parts if part)


def describe_culprit(regression: Regression) -> str:
    """`abc1234567 “subject”`, with the merge by which it came, and another branch than the project's."""
    merge, blamed = regression.first_bad, regression.blamed
    text = f"{blamed.short} “{blamed.subject}”"
    text += f", merged by {merge.short}" if regression.culprit else ""
    if merge.branch in (regression.project.branch, DETACHED):
        return text
    return f"{text} on branch {merge.branch}"


def describe_cause(regression: Regression) -> str:
    """`driver or system: changed between the two runs: driver 550.1 -> 560.2`: the class and its evidence."""
    first = next(iter(regression.cause_evidence), "").rstrip(".")
    return f"{regression.cause}: {first[:1].lower()}{first[1:]}" if first else regression.cause


def describe_metric_change(regression: Regression) -> str:
    """`step time +38 % [35, 41]`: the metric and its change, with the interval where it is known."""
    metric = regression.series.metric
    name = metric.name.replace("_", " ")
    change = regression.change_percent
    if change is None:
        return f"{name} {format_number(regression.before)} -> {format_number(regression.after)} {metric.unit}"
    if metric.is_exponent:
        interval = format_exponent_interval(regression)
        return f"{name} {regression.before:.2f} -> {regression.level_after:.2f}{interval}"
    ends = [percent_change(end) for end in (regression.low, regression.high) if end is not None]
    interval = f" [{ends[0]:.0f}, {ends[1]:.0f}]" if len(ends) == 2 and ends[0] != ends[1] else ""
    return f"{name} {change:+.{0 if abs(change) >= 10 else 1}f} %{interval}"


def format_exponent_interval(regression: Regression) -> str:
    """` [1.38, 1.50]`: the interval of its new level; empty where none is known."""
    metric, before = regression.series.metric, regression.before
    ends = [metric.level(before, end) for end in (regression.low, regression.high) if end is not None]
    return f" [{ends[0]:.2f}, {ends[1]:.2f}]" if len(ends) == 2 else ""


def percent_change(ratio: float) -> float:
    return 100 * (ratio - 1)


def describe_phase(regression: Regression) -> str:
    if not regression.phase:
        return ""
    place = f", {regression.place}" if regression.place not in ("", Regression.HOST_ALONE) else ""
    if regression.phase_share is None:
        return f"most of it in {regression.phase}{place}"
    return f"{regression.phase} explains {100 * regression.phase_share:.0f} %{place}"


def describe_suspect(regression: Regression) -> str:
    """`replay.py:push is called 256 times per step instead of once and was changed in that commit`."""
    if not regression.suspects:
        return ""
    first: dict[str, Any] = regression.suspects[0]
    cost = describe_function_change(first, regression.series.metric.kind)
    diff = "was changed in that commit" if first["changed"] else ""
    predicate = " and ".join(text for text in (cost, diff) if text)
    return f"{first['file']}:{first['function']} {predicate}".strip()


def describe_function_change(suspect: dict[str, Any], kind: str) -> str:
    """`is called 256 times per step instead of 1`; empty where the profiles show no difference."""
    before, after = suspect["calls_before"], suspect["calls_after"]
    if not after:
        return ""
    if not before:
        return f"is new, called {format_times(after)} per step"
    if after >= CALL_COUNT_RATIO * before:
        return f"is called {format_times(after)} per step instead of {format_number(before)}"
    old, new = suspect.get("cumulative_before"), suspect.get("cumulative_after")
    if kind in (Metric.Kind.TIME, Metric.Kind.RATE) and old and new and new > old:
        return f"takes {format_seconds(new)} per profiled step instead of {format_seconds(old)}"
    return ""


def describe_operation(operation: dict[str, Any]) -> str:
    """`aten::stack in replay/sample is done 256 times per step instead of once`."""
    name, phase, change = operation["operation"], operation["phase"], describe_operation_change(operation)
    return f"{name} in {phase} {change}" if phase else f"{name} {change}"


def describe_operation_change(operation: dict[str, Any]) -> str:
    """How a tensor operation differs from before: more often, or slower."""
    before, after = operation["count_before"], operation["count_after"]
    if not before:
        return f"is new, done {format_times(after)} per step"
    if after >= CALL_COUNT_RATIO * before:
        earlier = "once" if before == 1 else format_number(before)
        return f"is done {format_times(after)} per step instead of {earlier}"
    old, new = (format_seconds(operation[side]) for side in ("seconds_before", "seconds_after"))
    return f"is done as often as before and takes {new} per profiled step instead of {old}"


def format_times(value: float) -> str:
    return "once" if value == 1 else f"{format_number(value)} times"


def format_number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def format_seconds(value: float) -> str:
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.3g} µs"
