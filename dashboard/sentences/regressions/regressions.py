"""What a regression says: how large it is, since when, which phase and function, who was notified."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dashboard.models import Case, Change, Channel, Limit, Metric, Regression
from dashboard.repositories import DETACHED
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.change_sizes import format_change
from dashboard.sentences.formatting.english import lower_first
from dashboard.sentences.formatting.metric_labels import metric_words
from dashboard.sentences.measurements.processes import UNATTRIBUTED, describe_slow_process
from dashboard.sentences.regressions.bisections import GRADUALLY
from dashboard.sentences.regressions.causes import cause_sentence
from dashboard.sentences.regressions.learning import is_loss_of_quality, loss_headline, loss_sentence
from dashboard.sentences.series.limits import is_of_other_case, violations_headline

MORE_CALLS = Regression.MORE_CALLS
GROWTH = "memory_growth"


def regression_title(regression: Regression) -> str:
    """`step time +38 % [35, 41] in snake_dqn since abc1234567 “subject”; replay/sample explains ...; ...`."""
    head = regression_headline(regression)
    if regression.names_commit and is_loss_of_quality(regression) and not crossed_limits(regression):
        loss = loss_sentence(regression, f"{case_words(regression)}{describe_place(regression)}")
        return "; ".join(part for part in (loss, describe_suspect(regression)) if part)
    if regression.names_commit:
        parts = [f"{head} {describe_place(regression)}", describe_phase(regression)]
        parts += [describe_slowest_process(regression), describe_suspect(regression)]
    else:
        parts = [head, describe_cause(regression), describe_phase(regression)]
        parts.append(describe_slowest_process(regression))
    return "; ".join(part for part in parts if part)


def regression_headline(regression: Regression) -> str:
    """`step time +38 % [35, 41] in snake_dqn`, behind the limits that were crossed.

    A limit alone has no change behind it: the bound is all there is to say. The case is named where the
    project has several.
    """
    limits = crossed_limits(regression)
    texts = [violations_headline(limits, regression)] if limits else []
    # Where many were read at once, with their limits and changes, neither is asked for again.
    known = getattr(regression, "_prefetched_objects_cache", {})
    has_own = any(not is_of_other_case(limit, regression) for limit in limits)
    if not has_own or (known["changes"] if "changes" in known else regression.changes.exists()):
        texts.append(describe_change(regression))
    return f"{', '.join(texts)} {case_words(regression)}".rstrip()


def case_words(regression: Regression) -> str:
    """`in snake_dqn[variant=optimized] `; empty where the project has no other case."""
    if not is_one_of_several_cases(regression):
        return ""
    return f"in {regression.series.case} "


def is_one_of_several_cases(regression: Regression) -> bool:
    """As the query has found that read it; else it is asked for."""
    if (known := getattr(regression, "has_other_cases", None)) is not None:
        return bool(known)
    cases = Case.objects.filter(project=regression.project_id)
    return cases.exclude(pk=regression.series.configuration.case_id).exists()


def crossed_limits(regression: Regression) -> list[Limit]:
    if "limits" in getattr(regression, "_prefetched_objects_cache", {}):
        return list(regression.limits.all())
    # Where the query that read it found none, nothing is asked.
    if not getattr(regression, "has_limits", True):
        return []
    limits = regression.limits.select_related("series__metric", "series__configuration__case")
    return list(limits.order_by("series_id"))


def describe_change(regression: Regression) -> str:
    """`step time +38 % [35, 41]`: the metric and its change, with the interval where it is known.

    Of a loss of quality `training no longer learns (score 2.1 instead of 9.3, over 3 seeds)`.
    """
    if is_loss_of_quality(regression):
        return loss_headline(regression)
    return f"{metric_words(regression.series)} {format_change(regression)}"


def describe_memory_growth(regression: Regression, changes: Iterable[Change]) -> str:
    """`memory grows by 975 MB/1000 steps, 1.07 MB/1000 steps before`; empty where it doesn't grow faster.

    Of the case of its primary change, while it stands; `changes` are its own. A peak says how much was held
    at the end of the window, and nothing of that it would be more after a longer one.
    """
    if regression.withdrawn_at or regression.recovered_by_id or regression.state == Regression.State.REFUTED:
        return ""
    for change in changes:
        series, metric = change.series, change.series.metric
        if series.configuration_id != regression.series.configuration_id or series.phase:
            continue
        if metric.name == GROWTH and change.direction == Change.Direction.REGRESSION and change.after > 0:
            after, before = (
                numbers.format_quantity(value, metric.unit) for value in (change.after, change.before)
            )
            return f"memory grows by {after}, {before} before"
    return ""


def describe_place(regression: Regression, *, brief: bool = False) -> str:
    """`since abc1234567 “subject”`, or in which range, as long as that holds several commits.

    `brief` leaves the subject out, and what is said of all that came gradually.
    """
    if regression.came_gradually and regression.commits_left > 1:
        text = describe_range(regression, brief=brief)
    elif regression.commits_left > 1:
        text = f"in {describe_range(regression)}"
    else:
        subject = "" if brief else f" “{regression.blamed.subject}”"
        text = f"since {regression.blamed.short}{subject}{merged_words(regression)}"
    branch = regression.first_bad.branch
    return text if branch in (regression.project.branch, DETACHED) else f"{text} on branch {branch}"


def describe_range(item: Regression | Change, *, brief: bool = False) -> str:
    """`one of 4 commits, abc1234567..def8901234`: as git writes the range, without the last good commit.

    Of what came gradually `over 4 commits, abc1234567..def8901234, little by little or in parts`, unless
    `brief`.
    """
    gradual = isinstance(item, Regression) and item.came_gradually and not brief
    return f"{commits_in_range(item)}, {commit_range(item)}{f', {GRADUALLY}' if gradual else ''}"


def commits_in_range(item: Regression | Change) -> str:
    """`one of 4 commits`, or `over 4 commits` where it came little by little."""
    gradual = isinstance(item, Regression) and item.came_gradually
    return f"{'over' if gradual else 'one of'} {numbers.format_number(item.commits_left)} commits"


def regression_chip(regression: Regression) -> str:
    """`regression`, at the commit that ends its range `regression in one of 4`, or `regression over 4`."""
    if regression.commits_left == 1:
        return "regression"
    within = "over" if regression.came_gradually else "in one of"
    return f"regression {within} {numbers.format_number(regression.commits_left)}"


def commit_range(item: Regression | Change) -> str:
    """`abc1234567..def8901234`."""
    return f"{item.last_good.short}..{item.first_bad.short}"


def merged_words(regression: Regression) -> str:
    """`, merged by abc1234567`; empty where no merge brought it."""
    return f", merged by {regression.first_bad.short}" if regression.culprit else ""


def describe_cause(regression: Regression) -> str:
    """`driver or system: changed between the two runs: driver 550.1 → 560.2`: the class and its evidence."""
    first = cause_sentence(regression.cause_evidence[0]).rstrip(".") if regression.cause_evidence else ""
    return f"{regression.cause}: {lower_first(first)}" if first else regression.cause


def describe_phase(regression: Regression) -> str:
    """`replay/sample explains 92 %, on the device`; empty where no phase explains it.

    Of a small step with how much of its own time the phase lost.
    """
    if not regression.phase:
        return ""
    place = describe_host_or_device(regression) if regression.place != Regression.Place.HOST_ALONE else ""
    place = f", {place}" if place else ""
    phase = "code outside of phases" if regression.phase == UNATTRIBUTED else regression.phase
    if regression.phase_share is None:
        return f"most of it in {phase}{place}"
    text = f"{phase} explains {numbers.format_share(regression.phase_share)}{place}"
    return f"{text}{_proved_size(regression)}"


def _proved_size(regression: Regression) -> str:
    """`, by +10 % [8, 13] of its own time`: where pairs proved the step by the phase that explains it."""
    for evidence in regression.cause_evidence:
        if evidence["code"] == "experiment" and evidence.get("phases") == [regression.phase]:
            size = numbers.format_ratio(*evidence["phase"])
            return f", by {size} of its own time" if size else ""
    return ""


def describe_slowest_process(regression: Regression) -> str:
    """`rank 2 comes later: ...`, or a worker; empty where the data don't tell which process it is."""
    return describe_slow_process(regression.slow_processes[0]) if regression.slow_processes else ""


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
    return f"{first['file']}:{first['function']} {suspect_words(regression, first)}".strip()


def suspect_words(regression: Regression, suspect: Mapping[str, Any]) -> str:
    """`is called 256 times per step instead of 1 and was changed in that commit`; empty where neither is."""
    cost = describe_function_change(suspect, regression.series.metric.kind)
    return " and ".join(text for text in (cost, describe_edit(regression, suspect)) if text)


def describe_edit(regression: Regression, suspect: Mapping[str, Any]) -> str:
    """`was changed in that commit`, or by several.

    Empty where its commits didn't touch it, or where that isn't known yet: while a range is narrowed, the
    explanation is that of the wider one.
    """
    if not suspect.get("changed") or not regression.explains_own_commits:
        return ""
    if regression.commits_left > 1:
        first = regression.suspects[0] if regression.suspects else {}
        if regression.only_changed_by and suspect.get("function") == first.get("function"):
            return f"was changed by one of these commits, {regression.only_changed_by[:10]}"
        return "was changed by these commits"
    return "was changed in that merge" if regression.blamed.is_merge else "was changed in that commit"


def suspect_sentence(regression: Regression, suspect: Mapping[str, Any]) -> str:
    """`is called 256 times per step instead of 1 and was changed in that commit`."""
    return suspect_words(regression, suspect) or "costs more than before"


def describe_function_change(suspect: Mapping[str, Any], kind: str) -> str:
    """`is called 256 times per step instead of 1`; empty where the profiles show no difference."""
    before, after = suspect["calls_before"], suspect["calls_after"]
    if not after:
        return ""
    if not before:
        # New, or there before and called by none of the steps: the profiles can't tell these apart.
        return f"is called {format_times(after)} per step instead of never"
    if after >= MORE_CALLS * before:
        return f"is called {format_times(after)} per step instead of {numbers.format_number(before)}"
    old, new = suspect.get("cumulative_before"), suspect.get("cumulative_after")
    if kind in (Metric.Kind.TIME, Metric.Kind.RATE) and old and new and new > old:
        return (
            f"takes {numbers.format_seconds(new)} per profiled step instead of {numbers.format_seconds(old)}"
        )
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
    old, new = (numbers.format_seconds(operation[side]) for side in ("seconds_before", "seconds_after"))
    return f"is done as often as before and takes {new} per profiled step instead of {old}"


def format_times(value: float) -> str:
    return "once" if value == 1 else f"{numbers.format_number(value)} times"


def unannounced_reason(
    regression: Regression, channels: Sequence[Channel], *, imported: bool = False, unasked: bool = False
) -> str:
    """Why nobody was notified of it so far; `channels` are all of its project, also those turned off.

    `imported`: it was found in another tool's results. `unasked`: there are rules, and none asks for it.
    """
    if regression.is_triaged_away:
        return f"Nobody: it was triaged as {regression.triaged}, and what is triaged away sends no messages."
    if regression.withdrawn_at:
        return "Nobody: it was withdrawn before anyone was notified."
    if imported:
        return "Nobody, and nobody will be: it was found in imported results, which are old history."
    if not regression.proving and (reason := proof_without_message(regression)):
        return f"Nobody: {reason}"
    if unasked:
        return "Nobody: no rule of the project's channels matches it."
    if reason := why_no_channel(regression, [channel for channel in channels if channel.enabled]):
        return f"Nobody: {reason}" if channels else "Nobody: the project has no channel."
    if regression.proving:
        return f"Nobody yet: {what_it_waits_for(regression, channels)}"
    return "Nobody: no channel matched when it was confirmed, or it was found in old history."


def proof_without_message(regression: Regression) -> str:
    """Why an ended proof leads to no message; empty where it leads to one."""
    match regression.state:
        case Regression.State.REFUTED:
            return "it was refuted."
        case Regression.State.UNDECIDED:
            return "it stayed undecided, and only confirmed regressions send messages."
        case Regression.State.SUSPECTED if not regression.names_commit:
            return "no commit is to blame, so that nothing was proved."
        case Regression.State.SUSPECTED:
            return "it was found in old history, which is no news."
    return ""


def why_no_channel(regression: Regression, enabled: Sequence[Channel]) -> str:
    """Why none of the channels that are turned on asks for it; empty where one does."""
    if not enabled:
        return "all channels of the project are turned off."
    least = min(channel.minimum_percent for channel in enabled)
    size = regression.change_percent
    if size is None or abs(size) >= least:
        return ""
    change = numbers.format_percent_change(regression.ratio)
    return f"the project's channels ask for {numbers.format_number(least)} % or more, and this is {change}."


def what_it_waits_for(regression: Regression, channels: Sequence[Channel]) -> str:
    """What its message waits for, while it is being proved."""
    bisected = regression.commits_left > 1 and not regression.came_gradually
    if bisected and regression.state == Regression.State.CONFIRMED:
        count = numbers.format_number(regression.commits_left)
        return f"it is confirmed, and {count} commits are left to bisect. Channels are notified after that."
    if regression.state == Regression.State.CONFIRMED:
        return "it is confirmed, and its last measurements are under way. Channels are notified after them."
    early = any(channel.enabled and channel.suspicions for channel in channels)
    # That less is learned is reported once pairs over seeds say so, to whoever asks for suspicions too.
    early &= not is_loss_of_quality(regression)
    sooner = "; those that ask for suspicions as soon as the budget of false alerts allows" if early else ""
    return f"it is being proved. Its channels are notified once it is confirmed{sooner}."


def withdrawal_sentence(regression: Regression) -> str:
    """Why it was withdrawn, as a part of a sentence."""
    if regression.withdrawal == Regression.Withdrawal.REWRITTEN:
        return "its commits are no longer on the branch"
    return "a later judgement, with more points, no longer finds the step"


def regression_state_label(regression: Regression) -> str:
    """What became of a regression, where something did, else its state.

    What people called no fault isn't reported as recovered.
    """
    if regression.withdrawn_at:
        return "withdrawn"
    if regression.triaged in (Regression.Triaged.INTENDED, Regression.Triaged.NOT_REAL):
        return regression.triaged
    if regression.recovered_by_id:
        return "recovered"
    if regression.is_triaged_away:
        return regression.triaged
    if regression.state == Regression.State.SUSPECTED and not regression.proving:
        # A new driver or another machine: no two commits' runs could prove it.
        return "not blamed" if not regression.names_commit else "not proved"
    return regression.state


def triager_name(regression: Regression) -> str:
    """The user who decided last, also where the account is gone or one of a forge."""
    if regression.triaged_by:
        return regression.triaged_by.get_username()
    return getattr(regression, "triaged_account", "") or "a former account"
