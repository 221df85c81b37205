"""The policy of a project, key by key: what holds, as one would write it, and where that comes from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paceline.manifest.policy import DAYS, QuietHours, Schedule

from dashboard.policy.effective import FILTERS, EffectivePolicy, Origin
from dashboard.retention import KeptDays
from dashboard.retention.sentences import describe_days
from dashboard.sentences.formatting.numbers import format_count, format_duration, format_number


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
        "claims.every_days": format_count(policy.claims_every_days, "day")
        if policy.claims_every_days
        else "never",
        "claims.every_commits": format_count(policy.claims_every_commits, "commit")
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
