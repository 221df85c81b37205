"""Removing a project: it is gone from every page at once, and its rows piece by piece."""

from __future__ import annotations

import shutil
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from dashboard import dispatch, experiments, runs
from dashboard.access import Actor, AuditAction, record_action
from dashboard.models import (
    Case,
    Change,
    Check,
    Commit,
    Configuration,
    Experiment,
    ForgeConnection,
    Membership,
    Project,
    Regression,
    Run,
    Sentinel,
    Series,
    Trigger,
)
from dashboard.project_setup.errors import SetupError
from dashboard.repositories import RepositoryError, locate_mirror

# A run has thousands of points: so many rows of any kind go with one transaction.
BATCH = 50
CANCELLED = {"code": "project removed"}
REASON = "Its project was removed."


def remove_project(actor: Actor, project: Project, typed: str) -> None:
    """Hide it, end what it measures, have its rows deleted. Raises SetupError unless its name is typed."""
    if typed.strip() != project.slug:
        raise SetupError(f"Type {project.slug} to remove it.", "slug")
    with transaction.atomic():
        row = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if row.removed_slug:
            return
        # Before it is renamed: the log names it as people knew it.
        record_action(actor, AuditAction.PROJECT_REMOVED, row, row, repository=row.repository)
        Project.objects.filter(pk=row.pk).update(
            slug=f"removed-{row.pk}",
            removed_slug=row.slug,
            visibility=Project.Visibility.PRIVATE,
            poll_minutes=0,
            sentinels=False,
            hook_secret="",
            credentials="",
        )
        ForgeConnection.objects.filter(project=row).delete()
        Membership.objects.filter(project=row).delete()
        row.former_names.all().delete()
        row.api_tokens.all().delete()
        row.channels.update(enabled=False)
        Trigger.objects.filter(project=row, state=Trigger.State.RECEIVED).update(
            state=Trigger.State.REFUSED, detail=REASON
        )
        Check.objects.filter(project=row, state__in=Check.ACTIVE).update(state=Check.State.CANCELLED)
        experiments.cancel_experiments(Experiment.objects.filter(project=row), CANCELLED)
        runs.cancel_runs(Run.objects.filter(configuration__case__project=row), REASON)
        dispatch.send_task(dispatch.REMOVE_PROJECT, row.pk)


def send_removed_projects() -> None:
    """Go on with what an earlier task left."""
    for key in Project.objects.exclude(removed_slug="").values_list("pk", flat=True):
        dispatch.send_task(dispatch.REMOVE_PROJECT, key)


def delete_project(project_id: int) -> None:
    """Delete the rows of a project that was removed, and its mirror. Safe to repeat, also at once."""
    project = Project.objects.exclude(removed_slug="").filter(pk=project_id).first()
    if project is None:
        return
    # What another one protects stands behind it.
    delete_in_batches(Check.objects.filter(project=project))
    delete_in_batches(Experiment.objects.filter(project=project))
    delete_in_batches(Regression.objects.filter(project=project))
    delete_in_batches(Change.objects.filter(series__configuration__case__project=project))
    delete_in_batches(Run.objects.filter(configuration__case__project=project))
    delete_in_batches(Sentinel.objects.filter(configuration__case__project=project))
    delete_in_batches(Series.objects.filter(configuration__case__project=project))
    delete_in_batches(Configuration.objects.filter(case__project=project))
    delete_in_batches(Case.objects.filter(project=project))
    delete_in_batches(Commit.objects.filter(project=project))
    delete_mirror(project)
    delete_in_batches(Project.objects.filter(pk=project.pk))


def delete_in_batches(rows: QuerySet[Any]) -> None:
    # Not above: it imports scipy.
    from dashboard.regressions.apply import delete_with_regressions

    while keys := list(rows.values_list("pk", flat=True)[:BATCH]):
        delete_with_regressions(rows.model._default_manager.filter(pk__in=keys))


def delete_mirror(project: Project) -> None:
    """The copy of its repository on this machine; of nothing that a project of the same name has now."""
    if not project.repository:
        return
    name = project.mirror_name or project.removed_slug
    mirror = locate_mirror(settings.PACELINE_HOME, name, project.repository, project.branch)
    others = Project.objects.filter(removed_slug="", repository=project.repository)
    if others.filter(Q(mirror_name=name) | Q(slug=name, mirror_name="")).exists():
        return
    try:
        with mirror.locked():
            shutil.rmtree(mirror.folder, ignore_errors=True)
    except RepositoryError:
        # Somebody reads it just now: it stays, as of a project that never was removed.
        return
