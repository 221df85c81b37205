"""The policy of a project as its row holds it, and what follows from it: quiet hours and schedules."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone
from paceline.manifest import ManifestError
from paceline.manifest.policy import Policy, parse_policy_table, parse_policy_text

from dashboard.models import Project, Schedule
from dashboard.policy.cron import NeverDue, next_due
from dashboard.policy.effective import EffectivePolicy, merge_policies
from dashboard.policy.quiet_hours import next_quiet_hours

MOST_AT_ONCE = 1000


def project_policy(project: Project) -> EffectivePolicy:
    """What holds for the project: which pushes are looked at, queue, schedules, baseline."""
    return merge_policies(site_policy(project), parse_policy_table(project.manifest_policy), project.branch)


def commit_policy(project: Project, manifest: Policy) -> EffectivePolicy:
    """What holds for a commit with this manifest: the branches and tags are those of the project."""
    whole, own = project_policy(project), merge_policies(site_policy(project), manifest, project.branch)
    return own.on_refs_of(whole)


def site_policy(project: Project) -> Policy:
    """What the site says above the manifest; of a text that another version stored, nothing."""
    try:
        return parse_policy_text(project.policy, "policy")
    except ManifestError:
        return Policy()


def keep_manifest_policy(project: Project, raw: Mapping[str, Any], commit: str = "") -> None:
    """Remember the policy of the newest commit's manifest, and follow what changed in it."""
    changed = project.manifest_policy != raw
    if not changed and project.manifest_policy_commit == commit:
        return
    project.manifest_policy, project.manifest_policy_commit = dict(raw), commit
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(
            manifest_policy=project.manifest_policy, manifest_policy_commit=commit
        )
        if changed:
            follow_policy(project)


def follow_policy(project: Project) -> None:
    """Plan the quiet hours and the schedules of a project as its policy says now."""
    policy, now = project_policy(project), timezone.now()
    plan_quiet_hours(project, policy, now)
    plan_schedules(project, policy, now)


def plan_quiet_hours(project: Project, policy: EffectivePolicy, now: datetime) -> None:
    hours = policy.quiet_hours
    begins, ends = next_quiet_hours(hours, policy.time_zone, now) if hours else (None, None)
    project.quiet_from, project.quiet_until = begins, ends
    Project.objects.filter(pk=project.pk).update(quiet_from=begins, quiet_until=ends)


def plan_schedules(project: Project, policy: EffectivePolicy, now: datetime) -> None:
    """One row for each schedule; what is unchanged keeps when it is due."""
    stored = {row.name: row for row in Schedule.objects.select_for_update().filter(project=project)}
    wanted = {}
    for schedule in policy.schedules:
        row = stored.get(schedule.name)
        if row and (row.cron, row.time_zone) == (schedule.cron, policy.time_zone):
            wanted[schedule.name] = row
            continue
        try:
            due = next_due(schedule.cron, policy.time_zone, now)
        except NeverDue:
            continue
        wanted[schedule.name], _ = Schedule.objects.update_or_create(
            project=project,
            name=schedule.name,
            defaults={"cron": schedule.cron, "time_zone": policy.time_zone, "next_at": due},
        )
    Schedule.objects.filter(project=project).exclude(name__in=wanted).delete()


def plan_next_quiet_hours() -> None:
    """Of the projects whose quiet hours are over those that come next."""
    now = timezone.now()
    for project in Project.objects.filter(quiet_until__lte=now).order_by("pk")[:MOST_AT_ONCE]:
        plan_quiet_hours(project, project_policy(project), now)
