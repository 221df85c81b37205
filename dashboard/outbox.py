"""Messages that say more than any row does: written with what they follow from, and kept until they are done.

Of most work a row says that it waits, and the sweep finds that. What is sent from here stands in no other
table: a transactional outbox.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, QuerySet
from django.db.models.functions import Now

from dashboard import dispatch
from dashboard.models import FailedJob, OutboxMessage

# So long a message may wait in the queue, and so long its task may take: a worker may be killed in between.
SEND_AGAIN_AFTER = timedelta(minutes=2)
MOST_TAKEN = timedelta(minutes=30)
AT_ONCE = 100


def enqueue_message(task: str, *arguments: Any) -> None:
    """Send a task once the current transaction is committed, and again while nobody has done it."""
    with transaction.atomic():
        OutboxMessage.objects.create(
            task=task, arguments=list(arguments), send_again_at=Now() + SEND_AGAIN_AFTER
        )
        dispatch.send_task(task, *arguments)


def waiting_subjects(task: str) -> set[int]:
    """The first arguments of the messages of this task that nobody has done yet."""
    return set(OutboxMessage.objects.filter(task=task).values_list("arguments__0", flat=True))


def take_messages(task: str, arguments: Sequence[Any]) -> int:
    """Let those that ask for this task with these arguments be sent by nobody while it is done.

    The key of the newest one; 0 where there is none, because it was done already.
    """
    messages = _messages_for(task, arguments)
    newest: int = messages.aggregate(newest=Max("pk"))["newest"] or 0
    messages.filter(pk__lte=newest).update(send_again_at=Now() + MOST_TAKEN)
    return newest


def return_messages(task: str, arguments: Sequence[Any]) -> None:
    """After a passing trouble: they wait to be done as before, no longer than in the queue."""
    _messages_for(task, arguments).update(send_again_at=Now() + SEND_AGAIN_AFTER)


def drop_messages(task: str, arguments: Sequence[Any], newest: int | None = None) -> None:
    """After it was done, or given up. What was asked for after the newest one stays, where one is given."""
    messages = _messages_for(task, arguments)
    if newest is not None:
        messages = messages.filter(pk__lte=newest)
    messages.delete()


def send_forgotten_messages() -> None:
    """Send again what nobody has done for long. What fails is tried again after its pauses, not from here."""
    failing = FailedJob.objects.filter(task=OuterRef("task"), arguments=OuterRef("arguments"))
    late = OutboxMessage.objects.filter(~Exists(failing), send_again_at__lt=Now())
    rows = list(late.order_by("send_again_at", "pk")[:AT_ONCE])
    OutboxMessage.objects.filter(pk__in=[row.pk for row in rows]).update(
        send_again_at=Now() + SEND_AGAIN_AFTER
    )
    # Asked for several times, it is done once.
    for task, arguments in {
        (row.task, repr(row.arguments)): (row.task, row.arguments) for row in rows
    }.values():
        dispatch.send_task(task, *arguments)


def _messages_for(task: str, arguments: Sequence[Any]) -> QuerySet[OutboxMessage]:
    return OutboxMessage.objects.filter(task=task, arguments=list(arguments))
