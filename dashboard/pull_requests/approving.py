"""What people say of a check: that a fork's head may be run, that a slowdown is intended."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from dashboard import dispatch, outbox
from dashboard.models import Check
from dashboard.pull_requests.errors import CheckError

State = Check.State
LONGEST_NAME = 200


def approve_check(check: Check, head_hash: str, person: str) -> None:
    """Let a fork's code run: of the head that the person looked at, and of no other. Raises CheckError."""
    with transaction.atomic():
        if check.head_hash != head_hash:
            raise CheckError(f"head: this check is of {check.head_hash[:10]}, not of {head_hash[:10]}.")
        waiting = Check.objects.filter(pk=check.pk, state=State.WAITING)
        if not waiting.update(state=State.REQUESTED, approved_by=person[:LONGEST_NAME]):
            raise CheckError("check: it waits for no approval.")
        dispatch.send_task(dispatch.PREPARE_CHECK, check.pk)
        outbox.enqueue_message(dispatch.PUBLISH_CHECK, check.pk)


def mark_intended(check: Check, person: str, user: Any = None) -> None:
    """Let the pull request pass though it is worse, and its merge be expected. Raises CheckError.

    `user`: the account of this site, where the person has said it with one.
    """
    with transaction.atomic():
        worse = Check.objects.select_for_update().filter(answer=Check.Answer.WORSE, intended_by="")
        refused = worse.filter(pk=check.pk).first()
        if refused is None:
            raise CheckError("check: only what is proved to be worse can be intended, once.")
        if refused.state == State.MEASURING:
            # What else is worse nobody has seen yet.
            raise CheckError("check: the rest is still being measured; wait for that, or cancel it.")
        refused.intended_by, refused.intended_person = person[:LONGEST_NAME], user
        refused.save(update_fields=["intended_by", "intended_person"])
        outbox.enqueue_message(dispatch.PUBLISH_CHECK, check.pk)
