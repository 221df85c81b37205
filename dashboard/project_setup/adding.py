"""Adding a project whose repository was tested: all of it, or nothing."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from dashboard.access import AuditAction, Visitor, record_action
from dashboard.models import Membership, Project, RepositoryTest, Trigger
from dashboard.project_setup.errors import SetupError, refused_field
from dashboard.project_setup.manifests import plan_benchmarks
from dashboard.services.processes import FIRST_PROJECT
from dashboard.triggers.receiving import TriggerError, TriggerOrigin, parse_revisions, receive_trigger


@dataclass(frozen=True)
class WantedProject:
    """What the form says. `manifest` is empty where each commit's own counts; `last` is how many of the
    newest commits are measured, 0 for none; `benchmarks` are the names of those that are, none for all.
    """

    slug: str
    visibility: str
    manifest: str
    last: int
    benchmarks: tuple[str, ...] = ()


def add_tested_project(actor: Visitor, test: RepositoryTest, wanted: WantedProject) -> Project:
    """The project, with its maker as admin and the runs requested. Raises SetupError and leaves nothing."""
    if not test.is_readable:
        raise SetupError("Test the repository again: it could not be read.", "repository")
    if wanted.slug == FIRST_PROJECT:
        raise SetupError(
            f"{FIRST_PROJECT} is kept for the site's own code: hosts without a box trust what is called so.",
            "slug",
        )
    project = Project(
        slug=wanted.slug,
        repository=test.repository,
        credentials=test.credentials,
        branch=test.facts["branch"],
        visibility=wanted.visibility,
        manifest=wanted.manifest,
        hook_secret=secrets.token_urlsafe(32),
    )
    check_fields(project)
    text = wanted.manifest or test.facts["manifest"]
    if wanted.manifest:
        plan_benchmarks(wanted.manifest)
    if wanted.last and not text:
        raise SetupError(
            "The newest commit has none that can be used, so nothing can be measured: keep one here, or "
            "measure nothing yet.",
            "manifest",
        )
    with transaction.atomic():
        try:
            with transaction.atomic():
                project.save(force_insert=True)
        except IntegrityError:
            raise SetupError(f"There is a project {wanted.slug} already.", "slug") from None
        if actor.user is not None:
            Membership.objects.create(project=project, user=actor.user, role=Membership.Role.ADMIN)
        record_action(actor, AuditAction.PROJECT_ADDED, project, project, visibility=project.visibility)
        if wanted.last:
            request_first_runs(actor, project, wanted)
        test.delete()
    return project


def check_fields(project: Project) -> None:
    try:
        project.full_clean()
    except ValidationError as error:
        raise refused_field(error) from error


def request_first_runs(actor: Visitor, project: Project, wanted: WantedProject) -> None:
    try:
        revisions = parse_revisions(last=wanted.last)
        receive_trigger(project, TriggerOrigin(Trigger.Source.WEB), revisions, wanted.benchmarks, actor)
    except TriggerError as error:
        raise SetupError(str(error), "last") from error
