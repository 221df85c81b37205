"""What a regression says: how large it is, since when, which phase and function, who was told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.models import Channel, Limit, Metric, Regression
from dashboard.repositories import DETACHED
from dashboard.sentences import labels, numbers
from dashboard.sentences.causes import cause_sentence
from dashboard.sentences.limits import violation_text

MORE_CALLS = Regression.MORE_CALLS


def regression_title(regression: Regression) -> str:
    """`step time +38 % [35, 41] since abc1234567 “subject”; replay/sample explains 92 %; ...`."""
    limits = crossed_limits(regression)
    # A limit alone has no change behind it: the bound is all there is to say.
    changes = [violation_text(limit) for limit in limits]
    if not limits or regression.changes.exists():
        changes.append(describe_change(regression))
    head = ", ".join(changes)
    if regression.names_commit:
        parts = [f"{head} {describe_place(regression)}", describe_phase(regression)]
        parts.append(describe_suspect(regression))
    else:
        parts = [head, describe_cause(regression), describe_phase(regression)]
    return "; ".join(part for part in parts if part)


def crossed_limits(regression: Regression) -> list[Limit]:
    return list(regression.limits.select_related("series__metric").order_by("series_id"))


def describe_change(regression: Regression) -> str:
    """`step time +38 % [35, 41]`: the metric and its change, with the interval where it is known."""
    return f"{labels.metric_words(regression.series)} {labels.format_change(regression)}"


def describe_place(regression: Regression) -> str:
    """`since abc1234567 “subject”`; while several commits are left none of them is named as the culprit."""
    if regression.commits_left > 1:
        text = f"in {describe_range(regression)}"
    else:
        blamed = regression.blamed
        text = f"since {blamed.short} “{blamed.subject}”"
        text += f", merged by {regression.first_bad.short}" if regression.culprit else ""
    branch = regression.first_bad.branch
    return text if branch in (regression.project.branch, DETACHED) else f"{text} on branch {branch}"


def describe_range(regression: Regression) -> str:
    """`one of the 4 commits after abc1234567 up to def8901234`."""
    ends = f"after {regression.last_good.short} up to {regression.first_bad.short}"
    return f"one of the {numbers.format_number(regression.commits_left)} commits {ends}"


def describe_cause(regression: Regression) -> str:
    """`driver or system: changed between the two runs: driver 550.1 → 560.2`: the class and its evidence."""
    first = cause_sentence(regression.cause_evidence[0]).rstrip(".") if regression.cause_evidence else ""
    return f"{regression.cause}: {labels.lower_first(first)}" if first else regression.cause


def describe_phase(regression: Regression) -> str:
    """`replay/sample explains 92 %, on the device`; empty where no phase explains it."""
    if not regression.phase:
        return ""
    place = describe_host_or_device(regression) if regression.place != Regression.Place.HOST_ALONE else ""
    place = f", {place}" if place else ""
    if regression.phase_share is None:
        return f"most of it in {regression.phase}{place}"
    return f"{regression.phase} explains {numbers.format_share(regression.phase_share)}{place}"


def describe_host_or_device(regression: Regression) -> str:
    """Where the phase lost its time; empty where that can't be said."""
    place = Regression.Place(regression.place)
    match place:
        case Regression.Place.HOST:
            return "on the host"
        case Regression.Place.HOST_ALONE:
            return "on the host, which has no device to wait for"
        case Regression.Place.DEVICE:
            return "on the device"
        case Regression.Place.WAITS_FOR_DEVICE:
            waited = regression.place_phase
            return f"on the device: the host waits in this phase for the device's work of {waited}"
        case Regression.Place.UNKNOWN:
            return "on the host or the device: their times grew alike"
    return ""


def describe_suspect(regression: Regression) -> str:
    """`replay.py:push is called 256 times per step instead of once and was changed in that commit`."""
    if not regression.suspects:
        return ""
    first = regression.suspects[0]
    cost = describe_function_change(first, regression.series.metric.kind)
    parts = [text for text in (cost, describe_edit(regression, first)) if text]
    return f"{first['file']}:{first['function']} {' and '.join(parts)}".strip()


def describe_edit(regression: Regression, suspect: Mapping[str, Any]) -> str:
    """`was changed in that commit`, or by which of several; empty where the commits didn't touch it."""
    if not suspect.get("changed"):
        return ""
    if regression.commits_left == 1:
        return "was changed in that commit"
    first = regression.suspects[0] if regression.suspects else {}
    if regression.only_changed_by and suspect.get("function") == first.get("function"):
        return f"was changed in one of these commits, {regression.only_changed_by[:10]}"
    return "was changed in these commits"


def suspect_sentence(regression: Regression, suspect: Mapping[str, Any]) -> str:
    """`is called 256 times per step instead of 1 and was changed in that commit`."""
    cost = describe_function_change(suspect, regression.series.metric.kind)
    parts = [text for text in (cost, describe_edit(regression, suspect)) if text]
    return " and ".join(parts) or "costs more than before"


def describe_function_change(suspect: Mapping[str, Any], kind: str) -> str:
    """`is called 256 times per step instead of 1`; empty where the profiles show no difference."""
    before, after = suspect["calls_before"], suspect["calls_after"]
    if not after:
        return ""
    if not before:
        return f"is new, called {format_times(after)} per step"
    if after >= MORE_CALLS * before:
        return f"is called {format_times(after)} per step instead of {numbers.format_number(before)}"
    old, new = suspect.get("cumulative_before"), suspect.get("cumulative_after")
    if kind in (Metric.Kind.TIME, Metric.Kind.RATE) and old and new and new > old:
        return f"takes {format_seconds(new)} per profiled step instead of {format_seconds(old)}"
    return ""


def describe_operation(operation: Mapping[str, Any]) -> str:
    """`aten::stack in replay/sample is done 256 times per step instead of once`."""
    name, phase, change = operation["operation"], operation["phase"], describe_operation_change(operation)
    return f"{name} in {phase} {change}" if phase else f"{name} {change}"


def describe_operation_change(operation: Mapping[str, Any]) -> str:
    """How a tensor operation differs from before: more often, or slower."""
    before, after = operation["count_before"], operation["count_after"]
    if not before:
        return f"is new, done {format_times(after)} per step"
    if after >= MORE_CALLS * before:
        earlier = "once" if before == 1 else numbers.format_number(before)
        return f"is done {format_times(after)} per step instead of {earlier}"
    old, new = (format_seconds(operation[side]) for side in ("seconds_before", "seconds_after"))
    return f"is done as often as before and takes {new} per profiled step instead of {old}"


def format_times(value: float) -> str:
    return "once" if value == 1 else f"{numbers.format_number(value)} times"


def format_seconds(value: float) -> str:
    return numbers.format_quantity(value, "s")


def nobody_told(regression: Regression, channels: Sequence[Channel]) -> str:
    """Why nobody was told of it so far; `channels` are those of its project that are turned on."""
    if regression.is_away:
        return "Nobody: a regression that was triaged as intended, not real or won't fix isn't told."
    if regression.withdrawn_at:
        return "Nobody: it was withdrawn before anybody had to know."
    if regression.proving:
        what = "the commits between are told apart" if is_bisected(regression) else "it is proved"
        return f"Nobody yet: its channels are told once {what}."
    if regression.state == Regression.State.REFUTED:
        return "Nobody: it was refuted."
    if regression.state == Regression.State.UNDECIDED:
        return "Nobody: it stayed undecided, and only what is confirmed is told."
    if not regression.names_commit:
        return "Nobody: no commit is to blame."
    if regression.state == Regression.State.SUSPECTED:
        return "Nobody: it was found in old history, which is no news."
    if not channels:
        return "Nobody: the project has no channel."
    least = min(channel.minimum_percent for channel in channels)
    size = regression.change_percent
    if size is not None and abs(size) < least:
        return f"Nobody: the project's channels ask for changes of {least:g} % or more."
    return "Nobody: the project's channels were added after it was told, or were turned off then."


def is_bisected(regression: Regression) -> bool:
    """True while a confirmed range still holds several commits."""
    return regression.state == Regression.State.CONFIRMED and regression.commits_left > 1


def regression_state_label(regression: Regression) -> str:
    """What became of a regression, where something did, else its state.

    What people called no fault isn't told as recovered.
    """
    if regression.withdrawn_at:
        rewritten = regression.withdrawal == Regression.Withdrawal.REWRITTEN
        return "history rewritten" if rewritten else "withdrawn"
    if regression.triaged in (Regression.Triaged.INTENDED, Regression.Triaged.NOT_REAL):
        return regression.triaged
    if regression.recovered_by_id:
        return "recovered"
    if regression.is_away:
        return regression.triaged
    if regression.state == Regression.State.SUSPECTED and not regression.proving:
        # A new driver or another machine: no two commits' runs could prove it.
        return "not blamed" if not regression.names_commit else "not proved"
    return regression.state
