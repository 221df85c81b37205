"""The policy of a project in words: what holds, and why less was measured than was pushed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.policy import DAYS, QuietHours, Schedule

from dashboard.models import Trigger
from dashboard.policy.decision import Reason
from dashboard.policy.effective import FILTERS, EffectivePolicy, Origin
from dashboard.policy.unknown_names import UnknownName
from dashboard.retention import KeptDays
from dashboard.sentences.numbers import format_count, format_duration, format_number
from dashboard.sentences.retention import describe_days

# So many unknown names are told of one by one.
MOST_UNKNOWN = 8
# Of whole commits. A reason that a later version stored is left out.
OF_COMMITS = {
    Reason.REF: "the policy doesn't measure this branch or tag",
    Reason.BENCHMARK_REF: "no benchmark is measured on this branch or tag",
    Reason.IGNORED_PATHS: "only ignored paths changed",
    Reason.UNTOUCHED_PATHS: "no path that a benchmark names changed",
    Reason.SCHEDULED: "every case is measured by a schedule alone",
}
OF_BENCHMARKS = {
    Reason.BENCHMARK_REF: "it isn't measured on this branch or tag",
    Reason.IGNORED_PATHS: "only ignored paths changed",
    Reason.UNTOUCHED_PATHS: "none of its paths changed",
    Reason.SCHEDULED: "it is measured by a schedule alone",
}
# What a commit may cost.
OF_BUDGET = {
    Reason.BUDGET: "cases not measured, the budget of a commit is spent on those that were left longer",
    Reason.QUICK: "cases measured in short windows, the budget of a commit leaves no more",
}


def left_out_sentences(trigger: Trigger) -> list[str]:
    """`37 commits wait for the newest.` and the like, one for each reason."""
    said = (_describe_row(row) for row in trigger.left_out)
    return [sentence for sentence in said if sentence]


def _describe_row(row: Mapping[str, Any]) -> str:
    count, name, reason = int(row.get("commits", 0)), row.get("benchmark", ""), row.get("reason")
    commits = "1 commit" if count == 1 else f"{format_number(count)} commits"
    if reason == Reason.NEWEST_FIRST:
        return f"{commits} {'waits' if count == 1 else 'wait'} for the newest: measured when nothing else is."
    if reason == Reason.QUEUE_FULL:
        return f"{commits} {'is' if count == 1 else 'are'} asked for once fewer runs wait."
    if reason in OF_BUDGET:
        return f"{name}, {commits}: {OF_BUDGET[reason]}."
    if name:
        return f"{name}, {commits}: {OF_BENCHMARKS[reason]}." if reason in OF_BENCHMARKS else ""
    return f"{commits} not measured: {OF_COMMITS[reason]}." if reason in OF_COMMITS else ""


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """A key of the policy with its value, as one would write it, and where that comes from."""

    key: str
    value: str
    origin: Origin


def policy_rows(policy: EffectivePolicy, kept: Iterable[KeptDays]) -> list[PolicyRow]:
    """What holds, key by key. `kept`: how long detail is kept, within the site's bounds."""
    quiet = _describe_quiet_hours(policy.quiet_hours) if policy.quiet_hours else "none"
    most = f"{format_number(policy.most_queued)} runs" if policy.most_queued else "the site's limit"
    values = {
        **{name: _join_patterns(getattr(policy, name), name) for name in FILTERS},
        "coalesce": "yes, the newest commit first" if policy.coalesce else "no",
        "most_queued": most,
        "seconds_per_commit": format_duration(policy.seconds_per_commit)
        if policy.seconds_per_commit
        else "no budget",
        "time_zone": policy.time_zone,
        "quiet_hours": quiet,
        "baseline.pinned": policy.pinned or "none, rolling",
        "baseline.branches": ", ".join(f"{name}: {to}" for name, to in policy.branch_baselines.items())
        or "merge base",
        "claims.every_days": f"{policy.claims_every_days} days" if policy.claims_every_days else "never",
        "claims.every_commits": f"{format_number(policy.claims_every_commits)} commits"
        if policy.claims_every_commits
        else "never",
        "claims.share": f"{format_number(100 * policy.claims_share)} % of a machine's time",
        "claims.minutes": f"{format_number(policy.claims_minutes)} minutes a claim",
        **{f"keep.{row.kind}": describe_days(row) for row in kept},
        "keep.points_every": f"one of {format_number(policy.points_every)} commits",
    }
    rows = [PolicyRow(key, value, policy.origins[key]) for key, value in values.items()]
    for name, filters in policy.benchmarks.items():
        for key in FILTERS:
            path = f"benchmarks.{name}.{key}"
            if path in policy.origins:
                value = _join_patterns(getattr(filters, key) or (), key)
                rows.append(PolicyRow(path, value, policy.origins[path]))
    origin = policy.origins["schedule"]
    return rows + [
        PolicyRow(f"schedule.{row.name}", _describe_schedule(row), origin) for row in policy.schedules
    ]


def unknown_names_sentence(unknown: Sequence[UnknownName]) -> str:
    """What a saved policy names and the project doesn't have now; empty where there is all of it."""
    said = [
        f"{row.key}: no {row.kind} “{row.name[:60]}” is known yet"
        + (f", did you mean “{row.near}”?" if row.near else ".")
        for row in unknown[:MOST_UNKNOWN]
    ]
    if len(unknown) > MOST_UNKNOWN:
        said.append(f"So it is of {format_count(len(unknown) - MOST_UNKNOWN, 'more name')}.")
    return " ".join(said)


def _join_patterns(patterns: Sequence[str], key: str) -> str:
    nothing = "any" if key == "paths" else "none"
    return ", ".join(patterns) or nothing


def _describe_quiet_hours(hours: QuietHours) -> str:
    days = "daily" if hours.days == DAYS else ", ".join(hours.days)
    return f"{hours.start:%H:%M} to {hours.until:%H:%M}, {days}"


def _describe_schedule(schedule: Schedule) -> str:
    cases = [", ".join(f"{key}={value}" for key, value in row.items()) for row in schedule.cases]
    parts = [
        schedule.cron,
        ", ".join(schedule.benchmarks) or "all benchmarks",
        "; ".join(cases),
        "always" if schedule.always else "",
        "on pushes too" if schedule.on_push else "",
    ]
    return " · ".join(part for part in parts if part)
