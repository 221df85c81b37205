"""What people change of a project: each change whole, and in the audit log without its secrets."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from dashboard.access import Actor, AuditAction, record_action
from dashboard.models import ForgeConnection, Project, RepositoryTest
from dashboard.project_setup.errors import FIELD_NAMES, SetupError, refused_field
from dashboard.project_setup.manifests import plan_benchmarks
from dashboard.project_setup.repository_tests import may_use_account

LONGEST_NUMBER = 40
# Of these the audit log says that they were changed, not to what.
SECRET_FIELDS = ("credentials", "manifest")


def parse_number(text: str, field: str, *, whole: bool = False, name: str = "") -> float | int:
    """A number as people type it, with a comma or a point. `name`: of the field. Raises SetupError."""
    written = text.strip().replace(",", ".")
    try:
        # Python reads thousands of digits slowly, and underscores between them.
        if len(written) > LONGEST_NUMBER or "_" in written:
            raise ValueError
        value = int(written) if whole else float(written)
        if not math.isfinite(value):
            raise ValueError
    except (ValueError, OverflowError):
        kind = "a whole number" if whole else "a number"
        subject, typed = name or FIELD_NAMES.get(field, "It"), text.strip()[:LONGEST_NUMBER] or "empty"
        raise SetupError(f"{subject} must be {kind}, not {typed}.", field) from None
    return value


def change_settings(actor: Actor, project: Project, values: Mapping[str, Any]) -> list[str]:
    """Store these fields, all or none, and return the names of those that were others. Raises SetupError."""
    with transaction.atomic():
        row = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        changed = [name for name, value in values.items() if getattr(row, name) != value]
        for name in changed:
            setattr(row, name, values[name])
        # What isn't touched may be odd: an imported history has no repository.
        unchanged = {field.name for field in Project._meta.fields} - set(changed)
        try:
            row.full_clean(exclude=unchanged, validate_unique=False)
        except ValidationError as error:
            raise refused_field(error) from error
        if changed:
            row.save(update_fields=changed)
            shown = {name: values[name] for name in changed if name not in SECRET_FIELDS}
            about = {"fields": changed, "values": shown}
            record_action(actor, AuditAction.SETTINGS_CHANGED, row, row, **about)
    return changed


def change_repository(actor: Actor, test: RepositoryTest) -> list[str]:
    """Fetch from what was tested from now on. Raises SetupError where the test found it unusable."""
    project = test.project
    if project is None or not test.is_readable:
        raise SetupError("Test the repository again: it could not be read.", "repository")
    values = {
        "repository": test.repository,
        "credentials": test.credentials,
        "branch": test.facts["branch"],
    }
    noted: dict[str, Any] = {"repository_read_at": None, "repository_problem": ""}
    if test.repository != project.repository:
        noted["uses_account"] = may_use_account(test)
    with transaction.atomic():
        changed = change_settings(actor, project, values)
        if changed:
            Project.objects.filter(pk=project.pk).update(**noted)
        test.delete()
    return changed


def keep_manifest(actor: Actor, project: Project, text: str) -> list[str]:
    """Keep a manifest for all commits, or with an empty text count each commit's own. Raises SetupError."""
    if text:
        plan_benchmarks(text)
    with transaction.atomic():
        changed = change_settings(actor, project, {"manifest": text})
        if changed:
            # What was wrong with another manifest says nothing of this one: commits can be asked for again.
            project.commits.exclude(manifest_problem="").update(manifest_problem="")
    return changed


def renew_hook_secret(actor: Actor, project: Project) -> str:
    """A new secret for the requests of the git hook; those signed with the old one are refused at once."""
    secret = secrets.token_urlsafe(32)
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(hook_secret=secret)
        record_action(actor, AuditAction.SETTINGS_CHANGED, project, project, fields=["hook_secret"])
    return secret


def record_forge(actor: Actor, connection: ForgeConnection, change: str) -> None:
    """`change`: connected, renewed or disconnected. Call it within the transaction of the change."""
    about = {"change": change, "kind": connection.kind, "repository": connection.repository}
    record_action(actor, AuditAction.FORGE_CHANGED, connection.project, connection.project, **about)
