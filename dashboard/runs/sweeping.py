"""What the sweep does every ten seconds, so that a lost message or worker loses no run."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from django.contrib.postgres.functions import RandomUUID
from django.db import transaction
from django.db.models import Count, F, Q
from django.db.models.functions import Greatest, Now

from dashboard import dispatch
from dashboard.models import Run, Trigger

# A message on its way is given this long before a second one is sent.
PATIENCE = timedelta(seconds=30)
# A command resolves its trigger itself; this one was interrupted.
COMMANDS_PATIENCE = timedelta(minutes=15)
AT_ONCE = 100
LOST = f"Its worker was lost {Run.MOST_ATTEMPTS} times: no heartbeat came within the lease."


def sweep() -> None:
    """All that follows, in this order: what is requeued is rung for in the same sweep."""
    requeue_lost()
    ring_waiting()
    send_unresolved()
    send_unjudged()


def requeue_lost() -> int:
    """Request again the runs whose lease has ended, or fail those that have been lost too often. How many."""
    with transaction.atomic():
        # The UPDATE compares again what it finds locked: a heartbeat that comes in between saves its run.
        lost = Run.objects.filter(state__in=Run.HELD, lease_until__lt=Now())
        given_up = lost.filter(attempt__gte=Run.MOST_ATTEMPTS).update(
            state=Run.State.FAILED,
            failure=Run.Failure.LOST,
            reason=LOST,
            lease=RandomUUID(),
            lease_until=None,
            finished_at=Now(),
            activity="",
        )
        again = lost.filter(attempt__lt=Run.MOST_ATTEMPTS).update(
            state=Run.State.REQUESTED,
            lease=RandomUUID(),
            lease_until=None,
            machine=None,
            progress=0,
            activity="",
        )
    return given_up + again


def release(machine: str) -> int:
    """Request again, at once, what a machine held when its site was stopped; that costs no attempt. How many.

    For a start of the site alone: no worker of the machine lives that could still hold a run.
    """
    held = Run.objects.filter(state__in=Run.HELD, machine__name=machine)
    return held.update(
        state=Run.State.REQUESTED,
        attempt=Greatest(F("attempt") - 1, 0),
        lease=RandomUUID(),
        lease_until=None,
        machine=None,
        progress=0,
        activity="",
    )


def ring_waiting() -> None:
    """One bell for each requested run that has none in its pool's queue."""
    pools = Run.objects.filter(state=Run.State.REQUESTED).values("pool__name")
    for name, count in pools.annotate(count=Count("pk")).values_list("pool__name", "count"):
        bells = dispatch.count_waiting_messages(name)
        if bells is not None and bells < min(count, dispatch.MOST_WAKE_MESSAGES):
            dispatch.wake_workers(name, count - bells)


def send_unresolved() -> None:
    """Triggers that nobody has resolved: their message was lost, or the repository was busy."""
    received = Trigger.objects.filter(
        Q(received_at__lt=Now() - COMMANDS_PATIENCE) | ~Q(source=Trigger.Source.COMMAND),
        state=Trigger.State.RECEIVED,
        received_at__lt=Now() - PATIENCE,
    )
    _send(dispatch.RESOLVE, received.order_by("received_at").values_list("pk", flat=True)[:AT_ONCE])


def send_unjudged() -> None:
    done = Run.objects.filter(state=Run.State.DONE, judged_at__isnull=True, finished_at__lt=Now() - PATIENCE)
    _send(dispatch.JUDGE, done.order_by("finished_at").values_list("pk", flat=True)[:AT_ONCE])


def _send(task: str, ids: Iterable[int]) -> None:
    for pk in ids:
        dispatch.send_task(task, pk)
