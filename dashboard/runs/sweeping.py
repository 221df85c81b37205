"""What the sweep does every ten seconds, so that a lost message or worker loses no run."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from django.db.models import Count, Q
from django.db.models.functions import Now

from dashboard import dispatch, failed_jobs
from dashboard.models import Run, Trigger
from dashboard.policy.quiet_projects import quiet_projects
from dashboard.runs.transitions import requeue_lost_runs

# A message on its way is given this long before a second one is sent.
SEND_AGAIN_AFTER = timedelta(seconds=30)
# A command resolves its trigger itself; this one was interrupted.
COMMAND_INTERRUPTED_AFTER = timedelta(minutes=15)
AT_ONCE = 100


def sweep_runs() -> None:
    """All that follows, in this order: what is requeued is rung for in the same sweep."""
    requeue_lost_runs()
    wake_for_waiting_runs()
    send_unresolved_triggers()
    send_unjudged_runs()


def wake_for_waiting_runs() -> None:
    """One message for each requested run whose time has come and that has none in its pool's queue."""
    due = Q(not_before=None) | Q(not_before__lte=Now())
    startable = Run.objects.filter(due, state=Run.State.REQUESTED)
    if quiet := quiet_projects():
        startable = startable.exclude(configuration__case__project__in=quiet)
    pools = startable.values("configuration__pool__name")
    for name, count in pools.annotate(count=Count("pk")).values_list("configuration__pool__name", "count"):
        waiting = dispatch.count_waiting_messages(name)
        if waiting is not None and waiting < min(count, dispatch.MOST_WAKE_MESSAGES):
            dispatch.wake_workers(name, count - waiting)


def send_unresolved_triggers() -> None:
    """Triggers that nobody has resolved: their message was lost, or the repository was busy."""
    received = Trigger.objects.filter(
        Q(received_at__lt=Now() - COMMAND_INTERRUPTED_AFTER) | ~Q(source=Trigger.Source.COMMAND),
        state=Trigger.State.RECEIVED,
        received_at__lt=Now() - SEND_AGAIN_AFTER,
    )
    _send_tasks(dispatch.RESOLVE, received.order_by("received_at").values_list("pk", flat=True)[:AT_ONCE])


def send_unjudged_runs() -> None:
    done = Run.objects.filter(
        state=Run.State.DONE, judged_at__isnull=True, finished_at__lt=Now() - SEND_AGAIN_AFTER
    )
    done = done.exclude(pk__in=failed_jobs.failing_keys(dispatch.JUDGE))
    _send_tasks(dispatch.JUDGE, done.order_by("finished_at").values_list("pk", flat=True)[:AT_ONCE])


def _send_tasks(task: str, ids: Iterable[int]) -> None:
    for pk in ids:
        dispatch.send_task(task, pk)
