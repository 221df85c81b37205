"""Another name for a project. Addresses, hooks and commands with the old one go on until it is given up."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from dashboard.access import Actor, AuditAction, record_action
from dashboard.models import FormerName, Project
from dashboard.project_setup.errors import SetupError, refused_field
from dashboard.services.processes import FIRST_PROJECT

MOST_FORMER = 20


def rename_project(actor: Actor, project: Project, name: str) -> bool:
    """Whether it had another name before. Raises SetupError."""
    wanted = name.strip()
    try:
        with transaction.atomic():
            row = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
            if row.slug == wanted:
                return False
            before = row.slug
            check_trusted_name(before, wanted)
            row.slug = wanted
            # Its folder stays where it is: nobody who reads it just now is disturbed.
            row.mirror_name = row.mirror_name or before
            check_name(row)
            if row.former_names.exclude(slug=wanted).count() >= MOST_FORMER:
                raise SetupError(f"It has had {MOST_FORMER} names: give one of them up first.", "slug")
            row.former_names.filter(slug=wanted).delete()
            row.save(update_fields=["slug", "mirror_name"])
            FormerName.objects.create(project=row, slug=before)
            record_action(actor, AuditAction.PROJECT_RENAMED, row, row, before=before, name=wanted)
    except IntegrityError:
        raise SetupError(f"There is a project {wanted} already.", "slug") from None
    return True


def give_up_name(actor: Actor, project: Project, name: str) -> bool:
    """Nothing leads here by this name any more, and another project may take it; whether it had it."""
    with transaction.atomic():
        gone = bool(FormerName.objects.filter(project=project, slug=name).delete()[0])
        if gone:
            record_action(actor, AuditAction.NAME_GIVEN_UP, project, project, name=name)
    return gone


def check_name(project: Project) -> None:
    try:
        project.full_clean(
            exclude={field.name for field in Project._meta.fields} - {"slug"}, validate_unique=False
        )
    except ValidationError as error:
        raise SetupError(str(refused_field(error)), "slug") from error


def check_trusted_name(before: str, wanted: str) -> None:
    """A host without a box measures the first project alone, which it knows by its name."""
    if before == FIRST_PROJECT:
        raise SetupError(
            f"{FIRST_PROJECT} keeps its name: by it hosts without a box know the code that they trust.",
            "slug",
        )
    if wanted == FIRST_PROJECT:
        raise SetupError(
            f"No project can be renamed to {FIRST_PROJECT}: hosts without a box trust what is called so.",
            "slug",
        )
