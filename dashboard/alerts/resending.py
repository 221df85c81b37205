"""Sending a message again that was given up, because a person asks for it."""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now

from dashboard import dispatch
from dashboard.access import Actor, AuditAction, record_action
from dashboard.alerts.delivering import is_outdated
from dashboard.models import Delivery


class ResendError(Exception):
    """Why it isn't sent again; the message is one sentence for people."""


def resend_delivery(actor: Actor, delivery: Delivery) -> None:
    """Begin with its attempts anew, at once; what went wrong before stays listed. Raises ResendError."""
    with transaction.atomic():
        rows = Delivery.objects.select_for_update(of=("self",)).select_related("channel__project")
        row = rows.get(pk=delivery.pk)
        refuse_resending(row)
        Delivery.objects.filter(pk=row.pk).update(
            state=Delivery.State.PENDING, attempt=0, next_attempt_at=Now(), lease_until=None
        )
        about = {"event": row.event, "channel": row.channel.kind, "regression": row.regression_id}
        record_action(actor, AuditAction.MESSAGE_RESENT, row.channel.project, row, **about)
        dispatch.send_task(dispatch.DELIVER, row.pk)


def refuse_resending(delivery: Delivery) -> None:
    if delivery.state != Delivery.State.FAILED:
        raise ResendError("It isn't given up: there is nothing to send again.")
    if delivery.event == Delivery.Event.DIGEST:
        raise ResendError("What this digest had to tell comes with the next one.")
    if not delivery.channel.enabled and delivery.event != Delivery.Event.TEST:
        raise ResendError("Its channel is turned off: turn it on first.")
    if is_outdated(delivery):
        raise ResendError("What it says isn't so any more, so it isn't sent.")
