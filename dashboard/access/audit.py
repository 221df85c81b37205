"""The audit log: who did what. An entry is written in the transaction of what it tells of."""

from __future__ import annotations

import getpass
import os
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db.models import Model

from dashboard.access.visitors import Visitor
from dashboard.models import AuditEntry, Project

LONGEST_KEY = 100

Source = AuditEntry.Source


class AuditAction(StrEnum):
    """What is recorded. Each has a sentence in dashboard/sentences/administration/audit.py."""

    RUNS_REQUESTED = "runs requested"
    RUN_CANCELLED = "run cancelled"
    REQUEST_CANCELLED = "request cancelled"
    WAITING_CANCELLED = "waiting runs cancelled"
    REMEASURING_CANCELLED = "remeasuring cancelled"
    EXPERIMENT_REQUESTED = "experiment requested"
    EXPERIMENT_CANCELLED = "experiment cancelled"
    CLAIMS_MEASURED = "claims measured"
    CHECK_REQUESTED = "check requested"
    CHECK_APPROVED = "check approved"
    CHECK_INTENDED = "check intended"
    CHECK_CANCELLED = "check cancelled"
    REGRESSION_SNOOZED = "regression snoozed"
    REGRESSION_TRIAGED = "regression triaged"
    HISTORY_JUDGED = "history judged again"
    RESULTS_IMPORTED = "results imported"
    RESULTS_EXPORTED = "results exported"
    PICTURE_SHARED = "picture shared"
    PICTURE_REVOKED = "picture revoked"
    DOCUMENT_POSTED = "document posted"
    ACCOUNT_ADDED = "account added"
    ACCOUNT_CHANGED = "account changed"
    PROJECT_ADDED = "project added"
    PROJECT_RENAMED = "project renamed"
    NAME_GIVEN_UP = "name given up"
    PROJECT_REMOVED = "project removed"
    SETTINGS_CHANGED = "settings changed"
    MEMBER_ADDED = "member added"
    MEMBER_CHANGED = "member changed"
    MEMBER_REMOVED = "member removed"
    TOKEN_MADE = "token made"  # noqa: S105 - no token
    TOKEN_REVOKED = "token revoked"  # noqa: S105 - no token
    CHANNEL_CHANGED = "channel changed"
    MESSAGE_RESENT = "message sent again"
    FORGE_CHANGED = "forge changed"
    HOOK_INSTALLED = "hook installed"
    SENTINELS_CHANGED = "sentinels changed"
    JOIN_CODE_MADE = "join code made"
    MACHINE_CHANGED = "machine changed"
    JOBS_CHANGED = "failed jobs changed"
    KEY_RENEWED = "key renewed"
    TABLE_CHANGED = "table changed"
    SIGNED_IN = "signed in"
    SIGN_IN_FAILED = "sign-in failed"
    SIGNED_OUT = "signed out"


@dataclass(frozen=True, slots=True)
class CommandAccount:
    """The account of the operating system that a command runs as."""

    name: str


@dataclass(frozen=True, slots=True)
class ForgeAccount:
    """An account of a forge, of somebody who said something in a comment there; `name` is for people."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.name} ({self.kind})"


Actor = Visitor | CommandAccount | ForgeAccount


def command_account() -> CommandAccount:
    """Who runs this command."""
    try:
        return CommandAccount(getpass.getuser())
    except (KeyError, OSError):
        # A container may run as a number that has no name.
        return CommandAccount(f"uid {os.getuid()}")


def record_action(
    actor: Actor,
    action: str,
    project: Project | None = None,
    subject: Model | tuple[str, str] | None = None,
    **details: Any,
) -> AuditEntry:
    """Call it inside the transaction of the act. `subject`: a row, or (kind, key) of what is none.

    `details` are codes, numbers and names, never sentences or secrets.
    """
    kind, key = _name_subject(subject)
    return AuditEntry.objects.create(
        **_describe_actor(actor),
        action=AuditAction(action),
        project=project,
        project_slug=project.slug if project else "",
        subject_kind=kind,
        subject_key=key[:LONGEST_KEY],
        details=details,
    )


def _describe_actor(actor: Actor) -> dict[str, Any]:
    if isinstance(actor, CommandAccount):
        return {"source": Source.COMMAND, "account": actor.name[:150]}
    if isinstance(actor, ForgeAccount):
        return {"source": Source.FORGE, "account": str(actor)[:150]}
    if actor.user is None:
        return {"source": Source.ANONYMOUS, "address": actor.address}
    return {
        "source": Source.TOKEN if actor.token else Source.PERSON,
        "user": actor.user,
        "token": actor.token,
        "account": actor.user.get_username(),
        "address": actor.address,
    }


def _name_subject(subject: Model | tuple[str, str] | None) -> tuple[str, str]:
    if subject is None:
        return "", ""
    if isinstance(subject, Model):
        return str(subject._meta.verbose_name)[:30], str(subject.pk)
    return subject
