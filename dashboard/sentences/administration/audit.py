"""The entries of the audit log in words: what was done, and by whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dashboard.access.audit import AuditAction
from dashboard.models import AuditEntry
from dashboard.sentences.administration.triggers import describe_revisions
from dashboard.sentences.formatting.numbers import format_count

Details = Mapping[str, Any]

FORGE_CHANGES = {
    "connected": "connected the project with",
    "renewed": "made a new webhook secret for",
    "disconnected": "disconnected the project from",
}
ACCOUNT_CHANGES = {
    "closed": "closed the account",
    "opened": "opened again the account",
    "password link": "made a link for a new password of",
    "second factor": "reset the second factor of",
    "provider": "unlinked from its provider the account",
}
CHANNEL_CHANGES = {
    "added": "added the channel",
    "edited": "edited the channel",
    "turn-on": "turned on the channel",
    "turn-off": "turned off the channel",
    "mute": "muted the channel",
    "unmute": "unmuted the channel",
    "renew-secret": "made a new secret for the channel",
    "rules": "changed the rules of the channel",
    "remove": "removed the channel",
    "test": "sent a test to the channel",
}
JOB_CHANGES = {"retry": "tried again", "drop": "forgotten"}


def describe_entry(entry: AuditEntry) -> str:
    """`requested runs of the last 5 commits`: goes on from the account's name."""
    sentence = SENTENCES.get(entry.action)
    return sentence(entry, entry.details) if sentence else entry.action


def describe_actor(entry: AuditEntry) -> str:
    """`ada`, `ada, by the token nightly`, `root, by a command`, `ada (github), by a comment`, or nobody's."""
    if entry.source == AuditEntry.Source.ANONYMOUS:
        return "somebody"
    if entry.source == AuditEntry.Source.COMMAND:
        return f"{entry.account}, by a command"
    if entry.source == AuditEntry.Source.FORGE:
        return f"{entry.account}, by a comment"
    if entry.source == AuditEntry.Source.TOKEN:
        return f"{entry.account}, by the token {entry.token.name if entry.token else 'of then'}"
    return entry.account


def _say_numbered(verb: str, noun: str) -> Callable[[AuditEntry, Details], str]:
    return lambda entry, _: f"{verb} {noun} {entry.subject_key}"


def _say_plain(sentence: str) -> Callable[[AuditEntry, Details], str]:
    return lambda *_: sentence


def _requested_runs(_: AuditEntry, details: Details) -> str:
    names = details.get("benchmarks") or []
    asked = describe_revisions(details.get("revisions") or {})
    return f"requested runs: {asked}" + (f", {', '.join(names)} alone" if names else "")


def _changed_settings(_: AuditEntry, details: Details) -> str:
    values = details.get("values") or {}
    changed = [
        f"{name.replace('_', ' ')} to {values[name]}" if name in values else name.replace("_", " ")
        for name in details.get("fields") or []
    ]
    return f"changed {', '.join(changed) or 'the settings'}"


def _made_token(_: AuditEntry, details: Details) -> str:
    allowed = ", ".join(details.get("actions") or [])
    days = details.get("days", 0)
    return f"made the token {details.get('name')} ({details.get('prefix')}…) to {allowed}, for {days} days"


def _made_code(_: AuditEntry, details: Details) -> str:
    machine = f", as {details['machine']}" if details.get("machine") else ""
    return f"made a code by which a host joins pool {details.get('pool')}{machine}"


def _failed_sign_in(_: AuditEntry, details: Details) -> str:
    return f"failed to sign in as {details['account']}" if details.get("account") else "failed to sign in"


def _describe_rights(details: Details) -> str:
    """`administrator of the site`, `with Add projects, Triage`, or no rights beyond its roles."""
    if details.get("administrator"):
        return "administrator of the site"
    codes = details.get("permissions") or []
    named = [str(code).replace("_", " ") for code in codes]
    return f"on the whole site: {', '.join(named)}" if named else "no right on the whole site"


def _made_account(_: AuditEntry, details: Details) -> str:
    return f"made the account {details.get('account')}, {_describe_rights(details)}"


def _changed_account(_: AuditEntry, details: Details) -> str:
    name, change = details.get("account"), details.get("change")
    if change == "details":
        return f"changed {' and '.join(details.get('fields') or [])} of {details.get('before')}, now {name}"
    if change == "rights":
        return f"gave {name} these rights: {_describe_rights(details)}"
    return f"{ACCOUNT_CHANGES.get(str(change), 'changed')} {name}"


SENTENCES: dict[str, Callable[[AuditEntry, Details], str]] = {
    AuditAction.RUNS_REQUESTED: _requested_runs,
    AuditAction.RUN_CANCELLED: _say_numbered("cancelled", "run"),
    AuditAction.REQUEST_CANCELLED: lambda entry, details: (
        f"cancelled {format_count(details.get('runs', 0), 'run')} of request {entry.subject_key}"
    ),
    AuditAction.WAITING_CANCELLED: lambda _, details: (
        f"cancelled {format_count(details.get('runs', 0), 'run')} that waited"
        + (f", of {details['filter']}" if details.get("filter") else "")
        + (f", dropped {format_count(details['commits'], 'commit')}" if details.get("commits") else "")
    ),
    AuditAction.REMEASURING_CANCELLED: lambda _, details: (
        f"cancelled {format_count(details.get('runs', 0), 'run')} that measured disturbed ones again"
    ),
    AuditAction.EXPERIMENT_REQUESTED: _say_numbered("asked for", "experiment"),
    AuditAction.EXPERIMENT_CANCELLED: _say_numbered("cancelled", "experiment"),
    AuditAction.CLAIMS_MEASURED: lambda _, details: (
        f"asked for {format_count(details.get('claims', 0), 'claim')}"
    ),
    AuditAction.CHECK_REQUESTED: _say_numbered("asked for", "check"),
    AuditAction.CHECK_APPROVED: _say_numbered("let the head run of", "check"),
    AuditAction.CHECK_INTENDED: _say_numbered("called intended", "check"),
    AuditAction.CHECK_CANCELLED: _say_numbered("cancelled", "check"),
    AuditAction.REGRESSION_SNOOZED: _say_numbered("snoozed", "regression"),
    AuditAction.REGRESSION_TRIAGED: lambda entry, details: (
        f"triaged regression {entry.subject_key}: {details.get('triage')}"
    ),
    AuditAction.HISTORY_JUDGED: _say_plain("had the whole history judged again"),
    AuditAction.RESULTS_IMPORTED: lambda _, details: (
        f"imported results ({details.get('format')}, {details.get('points')} values)"
    ),
    AuditAction.RESULTS_EXPORTED: _say_plain("exported everything of the project"),
    AuditAction.PICTURE_SHARED: _say_plain("made an address that shows a picture to whoever knows it"),
    AuditAction.PICTURE_REVOKED: _say_plain("revoked the address of a picture"),
    AuditAction.DOCUMENT_POSTED: lambda _, details: (
        f"posted a document of {details.get('machine')}, measured at {str(details.get('commit'))[:10]}"
    ),
    AuditAction.ACCOUNT_ADDED: _made_account,
    AuditAction.ACCOUNT_CHANGED: _changed_account,
    AuditAction.PROJECT_ADDED: lambda _, details: f"added the project, {details.get('visibility')}",
    AuditAction.PROJECT_RENAMED: lambda _, details: (
        f"renamed the project from {details.get('before')} to {details.get('name')}"
    ),
    AuditAction.NAME_GIVEN_UP: lambda _, details: f"gave up the former name {details.get('name')}",
    AuditAction.PROJECT_REMOVED: lambda entry, details: (
        f"removed the project {entry.project_slug} of {details.get('repository')}"
    ),
    AuditAction.SETTINGS_CHANGED: _changed_settings,
    AuditAction.MEMBER_ADDED: lambda _, details: f"added {details.get('account')} as {details.get('role')}",
    AuditAction.MEMBER_CHANGED: lambda _, details: (
        f"made {details.get('account')} {details.get('role')}, before {details.get('before')}"
    ),
    AuditAction.MEMBER_REMOVED: lambda _, details: f"removed {details.get('account')}",
    AuditAction.TOKEN_MADE: _made_token,
    AuditAction.TOKEN_REVOKED: lambda _, details: (
        f"revoked the token {details.get('name')} ({details.get('prefix')}…)"
    ),
    AuditAction.CHANNEL_CHANGED: lambda _, details: (
        f"{CHANNEL_CHANGES.get(details.get('change', ''), 'changed the channel')} "
        f"{details.get('kind')} {details.get('address')}"
    ),
    AuditAction.MESSAGE_RESENT: lambda _, details: (
        f"sent a message again to the {details.get('channel')} channel: {details.get('event')}"
    ),
    AuditAction.FORGE_CHANGED: lambda _, details: (
        f"{FORGE_CHANGES.get(details.get('change', ''), 'changed')} {details.get('repository')} "
        f"on {details.get('kind')}"
    ),
    AuditAction.HOOK_INSTALLED: lambda _, details: (
        "installed the git hook" + (" with a new secret" if details.get("renewed") else "")
    ),
    AuditAction.SENTINELS_CHANGED: lambda _, details: (
        f"changed the sentinels: {details.get('change')} {str(details.get('commit', ''))[:10]}".rstrip()
    ),
    AuditAction.JOIN_CODE_MADE: _made_code,
    AuditAction.MACHINE_CHANGED: lambda _, details: (
        f"asked machine {details.get('name')} to {details.get('change')}"
    ),
    AuditAction.JOBS_CHANGED: lambda _, details: (
        f"had {details.get('number')} failed jobs {JOB_CHANGES.get(details.get('change', ''), 'changed')}"
    ),
    AuditAction.KEY_RENEWED: _say_plain("renewed the key of the site's secrets"),
    AuditAction.TABLE_CHANGED: lambda entry, details: (
        f"{details.get('change')} {entry.subject_kind} {details.get('name')} in the administration"
    ),
    AuditAction.SIGNED_IN: _say_plain("signed in"),
    AuditAction.SIGN_IN_FAILED: _failed_sign_in,
    AuditAction.SIGNED_OUT: _say_plain("signed out"),
}
