"""The commit status and the one comment of a pull request, kept as the check stands.

What was published is kept, so that a task which comes twice publishes once. A forge that is away or busy is
tried again by the sweep; one that refuses isn't asked again for the same.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from dashboard import dispatch, runs
from dashboard.forges.errors import ForgeAway, ForgeBusy, ForgeRefused
from dashboard.forges.forge import forge_of
from dashboard.forges.forge_api import Forge, StatusState
from dashboard.models import Check, ForgeConnection, PullRequest
from dashboard.pull_requests import sentences
from dashboard.pull_requests.report import CheckReport, read_report
from dashboard.pull_requests.requests import newest_check

logger = logging.getLogger(__name__)

CONTEXT = "paceline"
# After so long nobody waits for the answer any more.
GIVE_UP_AFTER = timedelta(days=2)
RETRY_PAUSE = timedelta(minutes=1)
# A worker that died while it published is given up for lost after this time.
LONGEST_PUBLISHING = timedelta(minutes=5)
RELATED = ("project", "pull_request", "base_commit")


def publish_check(check_id: int) -> None:
    """Publish at the forge of a pull request how its check stands; safe to repeat.

    Raises Busy while another process publishes for the same pull request: both would post a comment.
    """
    check = Check.objects.filter(pk=check_id, pull_request__isnull=False).first()
    connection = ForgeConnection.objects.filter(project__checks=check_id).select_related("project").first()
    if check is None or check.pull_request_id is None or connection is None:
        return
    mine = PullRequest.objects.filter(pk=check.pull_request_id)
    free = Q(publishing_until=None) | Q(publishing_until__lte=Now())
    if not mine.filter(free).update(publishing_until=Now() + LONGEST_PUBLISHING):
        raise runs.Busy(f"Another process publishes {check}.")
    try:
        publish_alone(connection, Check.objects.select_related(*RELATED).get(pk=check_id))
    finally:
        mine.update(publishing_until=None)


def publish_alone(connection: ForgeConnection, check: Check) -> None:
    """As `publish_check`, with no other process beside it."""
    if check.pull_request is None or is_paused(check):
        return
    report = read_report(check)
    try:
        forge = forge_of(connection)
        refusal = try_status(forge, report) if is_newest_of_head(check) else None
        if is_newest(check):
            publish_comment(forge, report, check.pull_request)
        if refusal:
            raise refusal
    except ForgeRefused as error:
        # The rights are too few, or the repository is another one: it would refuse the same again.
        keep_published(check, error=str(error), refused=sentences.status_description(report), again_at="")
        logger.warning("%s of %s isn't published: %s", check, check.project, error)
    except (ForgeAway, ForgeBusy) as error:
        until = error.until if isinstance(error, ForgeBusy) else timezone.now() + RETRY_PAUSE
        keep_published(check, error=str(error), again_at=until.isoformat())
        logger.info("%s of %s is published later: %s", check, check.project, error)
    else:
        if "error" in check.published:
            keep_published(check, error="", again_at="")


def is_paused(check: Check) -> bool:
    """While its forge wants to be left alone, or where it refused the very same."""
    again = check.published.get("again_at")
    return bool(again) and datetime.fromisoformat(again) > timezone.now()


def is_newest(check: Check) -> bool:
    """Of two checks of one pull request the later one has the comment."""
    newest = newest_check(check.pull_request) if check.pull_request else None
    return newest is None or newest.pk == check.pk


def is_newest_of_head(check: Check) -> bool:
    """Of two checks of one head the later one has the status: a forge keeps one for each commit."""
    later = Check.objects.filter(pull_request=check.pull_request, pk__gt=check.pk)
    return not later.filter(head_hash=check.head_hash).exists()


def try_status(forge: Forge, report: CheckReport) -> ForgeRefused | None:
    """The refusal, if there is one: it keeps no comment back. Bitbucket refuses the status of a commit that
    only a fork has."""
    try:
        publish_status(forge, report)
    except ForgeRefused as error:
        return error
    return None


def publish_status(forge: Forge, report: CheckReport) -> None:
    check = report.check
    state, text = sentences.status_state(check), sentences.status_description(report)
    # While it is measured each pair would be another text.
    status = [state, str(check.state) if state == "pending" else text]
    if check.published.get("status") == status or check.published.get("refused") == text:
        return
    forge.set_status(
        check.head_hash, StatusState(state), text, sentences.check_address(check), context_of(check)
    )
    keep_published(check, status=status)


def context_of(check: Check) -> str:
    return f"{CONTEXT}/{check.project.slug}"


def publish_comment(forge: Forge, report: CheckReport, pull_request: PullRequest) -> None:
    """Post the comment, or edit the one that is there. It says nothing before there is something to say."""
    check = report.check
    # That it waits for an approval is taken back once it doesn't; the progress of each pair isn't published.
    before = check.published
    is_outdated = bool(before.get("comment")) and before.get("comment_state") != check.state
    unanswered = check.state == Check.State.REQUESTED or sentences.is_unanswered(check)
    if unanswered and not is_outdated:
        return
    text = sentences.comment_markdown(report)
    digest = sentences.comment_digest(text)
    if check.published.get("comment") == digest:
        return
    known = pull_request.comment_id or forge.find_own_comment(
        pull_request.number, sentences.comment_marker(check)
    )
    if known and edit_comment(forge, pull_request, int(known), text):
        number = int(known)
    else:
        number = forge.post_comment(pull_request.number, text)
    PullRequest.objects.filter(pk=pull_request.pk).update(comment_id=str(number))
    keep_published(check, comment=digest, comment_state=str(check.state))


def edit_comment(forge: Forge, pull_request: PullRequest, comment: int, text: str) -> bool:
    """False where somebody has deleted the comment."""
    try:
        forge.edit_comment(pull_request.number, comment, text)
    except ForgeRefused as error:
        if error.status not in (404, 410):
            raise
        return False
    return True


def keep_published(check: Check, **values: Any) -> None:
    with transaction.atomic():
        row = Check.objects.select_for_update().only("published").get(pk=check.pk)
        check.published = {**row.published, **values}
        Check.objects.filter(pk=check.pk).update(published=check.published)


def send_unpublished_checks() -> None:
    """Publish what a forge was too busy for, or away."""
    late = Check.objects.filter(~Q(published__again_at=""), published__again_at__isnull=False)
    for key in late.filter(requested_at__gt=timezone.now() - GIVE_UP_AFTER).values_list("pk", flat=True):
        dispatch.send_task(dispatch.PUBLISH_CHECK, key)
