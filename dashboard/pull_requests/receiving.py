"""What a forge tells of pull requests and of comments on them, as a webhook or a poll has read it."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import Any

from django.db import transaction

from dashboard import dispatch, outbox
from dashboard.access import AuditAction, ForgeAccount, record_action
from dashboard.forges.errors import ForgeAnswerError, ForgeAway
from dashboard.forges.events import Action, CommentEvent, PullRequestEvent
from dashboard.forges.forge import forge_of
from dashboard.models import Check, ForgeConnection, Project, PullRequest
from dashboard.pull_requests.approving import approve_check, mark_intended
from dashboard.pull_requests.errors import CheckError
from dashboard.pull_requests.requests import ProposedHead, follow_pull_request, newest_check, repeat_check
from dashboard.repositories import FULL_HASH, LONGEST_BRANCH

logger = logging.getLogger(__name__)

STATES = {
    Action.OPENED: PullRequest.State.OPEN,
    Action.UPDATED: PullRequest.State.OPEN,
    Action.CLOSED: PullRequest.State.CLOSED,
    Action.MERGED: PullRequest.State.MERGED,
}
# A line of its own in a comment. An approval names the head that its writer looked at, by its whole hash: of
# the beginning of one somebody can make two commits, and push the other after the look.
INTENDED = "intended"
COMMAND = re.compile(r"^/paceline (intended|again|approve [0-9a-f]{40}(?:[0-9a-f]{24})?)\s*$", re.MULTILINE)


def receive_pull_request(project: Project, event: PullRequestEvent, **_: Any) -> None:
    """Follow it, unless it is a draft that was never checked. Called within the delivery's transaction."""
    if event.action not in STATES:
        return
    if not FULL_HASH.fullmatch(event.head_commit):
        # Bitbucket's are shortened: the worker asks for the whole one.
        outbox.enqueue_message(dispatch.COMPLETE_PULL_REQUEST, project.pk, event.number)
        return
    follow_pull_request(project, proposed_head(event))


def proposed_head(event: PullRequestEvent) -> ProposedHead:
    tip = event.base_commit if FULL_HASH.fullmatch(event.base_commit) else ""
    return ProposedHead(
        number=event.number,
        title=event.title,
        author=event.author,
        url=event.url if event.url.startswith(("https://", "http://")) else "",
        head_hash=event.head_commit,
        head_ref=event.head_ref[:LONGEST_BRANCH],
        onto=event.base_ref[:LONGEST_BRANCH],
        onto_hash=tip,
        is_fork=event.is_fork,
        is_draft=event.is_draft,
        state=STATES[event.action],
        merge_hash=event.merge_commit if FULL_HASH.fullmatch(event.merge_commit) else "",
        updated_at=event.updated_at,
    )


def complete_pull_request(project_id: int, number: int) -> None:
    """Ask the forge for a pull request of which it told an abbreviated head. Raises what the forge's does."""
    connection = ForgeConnection.objects.select_related("project").filter(project=project_id).first()
    if connection is None:
        return
    event = forge_of(connection).read_pull_request(number)
    if not FULL_HASH.fullmatch(event.head_commit):
        event = replace(event, head_commit=known_head(connection, event))
    receive_pull_request(connection.project, event)


def known_head(connection: ForgeConnection, event: PullRequestEvent) -> str:
    """The whole hash of a head that is gone with its branch or its fork, as it was told before."""
    rows = PullRequest.objects.filter(project=connection.project_id, number=event.number)
    known = rows.filter(head_hash__startswith=event.head_commit).first()
    if known is None:
        raise ForgeAway(f"The forge doesn't know the commit {event.head_commit} of #{event.number}.")
    return known.head_hash


def receive_comment(project: Project, event: CommentEvent, **_: Any) -> None:
    """Look into a comment that speaks to us, later: whether its writer may is asked of the forge."""
    match = COMMAND.search(event.body) if event.is_pull_request else None
    if match and event.author_account:
        command = match[1]
        if command == INTENDED:
            # Of the head that its writer has seen: a newer one may come while the forge doesn't answer.
            rows = PullRequest.objects.filter(project=project, number=event.number)
            command = " ".join([command, *rows.values_list("head_hash", flat=True)])
        outbox.enqueue_message(
            dispatch.HANDLE_COMMENT, project.pk, event.number, event.author_account, event.author, command
        )


def handle_comment(project_id: int, number: int, account: str, name: str, text: str) -> None:
    """Do what a comment says, if the forge lets its writer write to the repository."""
    connection = ForgeConnection.objects.select_related("project").filter(project=project_id).first()
    followed = PullRequest.objects.filter(project=project_id, number=number).first()
    check = newest_check(followed) if followed else None
    if connection is None or check is None:
        return
    try:
        role = forge_of(connection).role_of(account)
    except ForgeAnswerError as error:
        logger.warning("What %s may do in %s isn't known: %s", account, connection, error)
        raise
    if role not in ("write", "admin"):
        logger.info("%s may not say %r on #%s of %s", account, text, number, connection.project)
        return
    try:
        with transaction.atomic():
            writer = ForgeAccount(connection.kind, name)
            action, changed = act_on_comment(check, text, str(writer))
            details = {"head": changed.head_hash, "pull_request": number, "forge_account": account}
            record_action(writer, action, connection.project, changed, **details)
    except CheckError as error:
        logger.info("%r on #%s of %s: %s", text, number, connection.project, error)


def act_on_comment(check: Check, text: str, person: str) -> tuple[AuditAction, Check]:
    """What was done, and the check that it is about now: a new one where it runs again. Raises CheckError."""
    command, _, given = text.partition(" ")
    if command == INTENDED:
        if given and check.head_hash != given:
            raise CheckError(f"head: {check.head_hash[:10]} came after the comment, of {given[:10]}.")
        mark_intended(check, person)
        return AuditAction.CHECK_INTENDED, check
    if command == "again":
        return AuditAction.CHECK_REQUESTED, repeat_check(check)
    if check.head_hash != given:
        raise CheckError(f"head: the newest is {check.head_hash[:10]}, not {given[:10]}.")
    approve_check(check, check.head_hash, person)
    return AuditAction.CHECK_APPROVED, check
