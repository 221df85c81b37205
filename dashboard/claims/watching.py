"""What happens by itself: files are read, claims are measured as the policy says, in its share of time."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import transaction
from django.db.models import Sum
from django.db.models.functions import Now
from django.utils import timezone

from dashboard import failed_jobs, runs
from dashboard.claims.errors import ClaimsError
from dashboard.claims.judging import experiment_ended
from dashboard.claims.reading import read_claims, resolve_commit
from dashboard.claims.requests import request_claims
from dashboard.claims.starting import start_measurement
from dashboard.claims.storing import store_claims
from dashboard.models import ClaimMeasurement, ClaimsFile, Commit, Experiment, Machine, Project
from dashboard.policy.effective import EffectivePolicy
from dashboard.policy.project_policy import project_policy

logger = logging.getLogger(__name__)

State, Requester = ClaimMeasurement.State, ClaimMeasurement.Requester
LOOK_BACK = timedelta(hours=24)
MOST_ENDED = 500


def watch_claims() -> None:
    """Read the claims of projects that have new commits, and ask for those whose time has come."""
    watched = Project.objects.exclude(repository="").filter(removed_slug="").order_by("pk")
    failed_jobs.try_each(watched, watch_project, "What is claimed in")


def watch_project(project: Project) -> None:
    """Read the claims of its newest commit, and ask for those that are due."""
    try:
        request_due_claims(project)
    except ClaimsError as error:
        logger.info("The claims of %s aren't asked for: %s", project, error)


def request_due_claims(project: Project) -> None:
    """Raises ClaimsError."""
    newest = read_newest(project)
    if newest is None:
        return
    files = ClaimsFile.objects.filter(project=project).select_related("asked_at_commit", "commit")
    policy = project_policy(project)
    for file in files:
        if not file.problem and is_due(file, policy, newest.position):
            request_claims(project, file.benchmark, newest.hash)


def read_new_claims(project_id: int) -> None:
    """After new commits came in; what the policy asks for waits for its watch."""
    project = Project.objects.filter(pk=project_id, removed_slug="").first()
    try:
        if project is not None:
            read_newest(project)
    except ClaimsError as error:
        logger.info("The claims of %s aren't read: %s", project, error)


def read_newest(project: Project) -> Commit | None:
    """Store the claims of the newest commit of the project's branch, which is returned.

    Reads the mirror as it was fetched last: triggers and polls fetch it. Raises ClaimsError.
    """
    newest = newest_commit(project)
    if newest is not None and project.claims_read_at != newest.hash:
        facts = resolve_commit(project, newest.hash)
        found = read_claims(project, facts)
        with transaction.atomic():
            # Read by two at once, the claims of the later commit are those that count.
            Project.objects.select_for_update(no_key=True).get(pk=project.pk)
            if newest != newest_commit(project):
                return newest
            commit = runs.get_or_create_commits(project, [facts])[facts.hash]
            store_claims(project, commit, found)
            Project.objects.filter(pk=project.pk).update(claims_read_at=newest.hash)
    return newest


def newest_commit(project: Project) -> Commit | None:
    return project.commits.filter(branch=project.branch).order_by("-position", "-pk").first()


def is_due(file: ClaimsFile, policy: EffectivePolicy, position: int) -> bool:
    """Whether there is something new to measure, and so many days or commits have passed."""
    asked = file.asked_at_commit
    if asked is not None and asked.position >= position:
        return False
    days, commits = policy.claims_every_days, policy.claims_every_commits
    if days and timezone.now() - file.asked_at >= timedelta(days=days):
        return True
    return bool(commits) and (asked is None or position - asked.position >= commits)


def sweep_claims() -> None:
    """Settle what a lost message left waiting, and start what its budget allows."""
    ended = ClaimMeasurement.objects.filter(
        state=State.REQUESTED, experiment__state__in=Experiment.TERMINAL
    ).values_list("experiment", flat=True)
    keys = {key for key in ended[:MOST_ENDED] if key is not None}
    failed_jobs.try_each(keys, experiment_ended, "Experiment")
    waiting = ClaimMeasurement.objects.filter(state=State.REQUESTED, experiment=None)
    waited_for = Project.objects.filter(pk__in=waiting.values("claim__project"))
    failed_jobs.try_each(waited_for, start_next, "What is claimed in")


def start_next(project: Project) -> Experiment | None:
    """Start the longest waiting measurement of the policy, one at a time and within its share of time."""
    active = Experiment.objects.filter(
        project=project, purpose=Experiment.Purpose.CLAIM, state__in=Experiment.ACTIVE
    )
    if active.exists():
        return None
    with transaction.atomic():
        rows = ClaimMeasurement.objects.select_for_update(of=("self",), skip_locked=True)
        measurement = (
            rows.filter(claim__project=project, state=State.REQUESTED, experiment=None)
            .select_related("claim", "commit", "head__pool", "head__case", "base__case")
            .order_by("requested_at", "pk")
            .first()
        )
        if measurement is None or is_share_spent(project, measurement):
            return None
        return start_measurement(project, measurement)


def is_share_spent(project: Project, measurement: ClaimMeasurement) -> bool:
    """Whether the project's claims took their part of the pool's time within the last day."""
    pool = measurement.head.pool
    held = Experiment.objects.filter(
        project=project,
        purpose=Experiment.Purpose.CLAIM,
        head_configuration__pool=pool,
        measuring_at__gt=Now() - LOOK_BACK,
    )
    spent = float(held.aggregate(took=Sum("seconds"))["took"] or 0.0)
    machines = Machine.objects.filter(pool=pool, seen_at__gt=Now() - LOOK_BACK).count()
    return spent >= project_policy(project).claims_share * max(machines, 1) * LOOK_BACK.total_seconds()
