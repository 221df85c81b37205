"""What a regression says in words: the first line of every message."""

from __future__ import annotations

from typing import Any

from dashboard.models import Metric, Regression
from dashboard.repositories.history import DETACHED

MORE_CALLS = 1.2


def title(regression: Regression) -> str:
    """`step time +38 % [35, 41] since abc1234567 “subject”; replay/sample explains 92 %; ...`."""
    # A limit alone has no change behind it: the bound is all there is to say.
    what = [regression.limit] if regression.limit else []
    what += [] if regression.limit and not regression.changes.exists() else [size(regression)]
    if not regression.names_commit:
        return "; ".join(text for text in (", ".join(what), cause(regression), phase(regression)) if text)
    parts = [f"{', '.join(what)} since {since(regression)}"]
    parts += [text for text in (phase(regression), suspect(regression)) if text]
    return "; ".join(parts)


def since(regression: Regression) -> str:
    """`abc1234567 “subject”`, with the merge by which it came, and another branch than the project's."""
    merge, blamed = regression.first_bad, regression.blamed
    text = f"{blamed.short} “{blamed.subject}”"
    text += f", merged by {merge.short}" if regression.culprit else ""
    elsewhere = merge.branch not in (regression.project.branch, DETACHED)
    return f"{text} on branch {merge.branch}" if elsewhere else text


def cause(regression: Regression) -> str:
    """`driver or system: changed between the two runs: driver 550.1 -> 560.2`: what moved, if no code did."""
    first = next(iter(regression.cause_evidence), "").rstrip(".")
    return f"{regression.cause}: {first[:1].lower()}{first[1:]}" if first else regression.cause


def size(regression: Regression) -> str:
    """`step time +38 % [35, 41]`: by how much, with the interval where it is known."""
    metric = regression.series.metric
    name = metric.name.replace("_", " ")
    change = regression.change_percent
    if change is None:
        return f"{name} {number(regression.before)} -> {number(regression.after)} {metric.unit}"
    if metric.is_exponent:
        return f"{name} {regression.before:.2f} -> {regression.level_after:.2f}{exponents_ends(regression)}"
    ends = [percent(end) for end in (regression.low, regression.high) if end is not None]
    interval = f" [{ends[0]:.0f}, {ends[1]:.0f}]" if len(ends) == 2 and ends[0] != ends[1] else ""
    return f"{name} {change:+.{0 if abs(change) >= 10 else 1}f} %{interval}"


def exponents_ends(regression: Regression) -> str:
    """` [1.38, 1.50]`: the interval of its new level; empty where none is known."""
    metric, before = regression.series.metric, regression.before
    ends = [metric.level(before, end) for end in (regression.low, regression.high) if end is not None]
    return f" [{ends[0]:.2f}, {ends[1]:.2f}]" if len(ends) == 2 else ""


def percent(ratio: float) -> float:
    return 100 * (ratio - 1)


def phase(regression: Regression) -> str:
    if not regression.phase:
        return ""
    place = f", {regression.place}" if regression.place not in ("", Regression.HOST_ALONE) else ""
    if regression.phase_share is None:
        return f"most of it in {regression.phase}{place}"
    return f"{regression.phase} explains {100 * regression.phase_share:.0f} %{place}"


def suspect(regression: Regression) -> str:
    """What the first suspect does otherwise than before."""
    if not regression.suspects:
        return ""
    first: dict[str, Any] = regression.suspects[0]
    did = behaviour(first, regression.series.metric.kind)
    changed = "was changed in that commit" if first["changed"] else ""
    said = " and ".join(text for text in (did, changed) if text)
    return f"{first['file']}:{first['function']} {said}".strip()


def behaviour(suspect: dict[str, Any], kind: str) -> str:
    before, after = suspect["calls_before"], suspect["calls_after"]
    if not after:
        return ""
    if not before:
        return f"is new, called {times(after)} per step"
    if after >= MORE_CALLS * before:
        return f"is called {times(after)} per step instead of {number(before)}"
    old, new = suspect.get("cumulative_before"), suspect.get("cumulative_after")
    if kind in (Metric.Kind.TIME, Metric.Kind.RATE) and old and new and new > old:
        return f"takes {seconds(new)} per profiled step instead of {seconds(old)}"
    return ""


def operation(one: dict[str, Any]) -> str:
    """`aten::stack in replay/sample is done 256 times per step instead of once`."""
    where = f"{one['operation']} in {one['phase']}" if one["phase"] else one["operation"]
    return f"{where} {operation_behaviour(one)}"


def operation_behaviour(one: dict[str, Any]) -> str:
    """More often or slower: what a tensor operation does otherwise than before."""
    before, after = one["count_before"], one["count_after"]
    if not before:
        return f"is new, done {times(after)} per step"
    if after >= MORE_CALLS * before:
        return f"is done {times(after)} per step instead of {'once' if before == 1 else number(before)}"
    old, new = seconds(one["seconds_before"]), seconds(one["seconds_after"])
    return f"is done as often as before and takes {new} per profiled step instead of {old}"


def times(value: float) -> str:
    return "once" if value == 1 else f"{number(value)} times"


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def seconds(value: float) -> str:
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.3g} µs"
