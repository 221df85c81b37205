"""What somebody ends before its end, each with its line in the audit log: runs, and experiments."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from dashboard import experiments, runs
from dashboard.access import AuditAction, Visitor, record_action
from dashboard.models import Backlog, Experiment, Project, Run, Trigger

# What people and scripts ask for they may cancel, and what measures a claim; what a regression asked for ends
# with its triage.
CANCELLABLE = (Experiment.Purpose.PERSON, Experiment.Purpose.SCRIPT, Experiment.Purpose.CLAIM)


class NotCancellable(Exception):  # noqa: N818 - reads as a fact
    """It has ended, or somebody else decides about it; the message is one sentence for people."""


def cancel_run(visitor: Visitor, run: Run) -> None:
    """Raises NotCancellable where it has ended."""
    with transaction.atomic():
        if run.state in Run.TERMINAL or not runs.cancel_run(run.pk, _name_visitor(visitor)):
            run.refresh_from_db(fields=["state"])
            raise NotCancellable(f"Run {run.pk} had already ended: it is {run.state}.")
        record_action(visitor, AuditAction.RUN_CANCELLED, run.case.project, run)


def cancel_trigger(visitor: Visitor, trigger: Trigger) -> int:
    """End the runs that it asked for and that haven't ended; how many. Raises NotCancellable without one.

    What the site had asked for before is measured all the same, whenever its turn comes.
    """
    with transaction.atomic():
        asked = Run.objects.filter(trigger=trigger)
        ended = runs.cancel_runs(asked, f"Cancelled by {_name_visitor(visitor)}.")
        awaited = Run.objects.filter(awaited_by=trigger).exclude(state__in=Run.TERMINAL)
        waited = awaited.update(awaited_by=None)
        if not ended and not waited:
            raise NotCancellable(f"No run of request {trigger.pk} is left to cancel.")
        record_action(visitor, AuditAction.REQUEST_CANCELLED, trigger.project, trigger, runs=ended)
    return ended


def cancel_waiting(
    visitor: Visitor, project: Project, rows: QuerySet[Run], left: QuerySet[Backlog], words: str = ""
) -> tuple[int, int]:
    """End those of a project's runs that no machine has begun, and drop the commits whose runs were still to
    be asked for: they would fill the queue again. How many of both; raises NotCancellable without one.

    `words`: what the runs are filtered by.
    """
    with transaction.atomic():
        commits = {sha for backlog in left.select_for_update(of=("self",)) for sha in backlog.hashes}
        left.delete()
        waiting = Run.objects.filter(pk__in=rows.order_by().values("pk"), state=Run.State.REQUESTED)
        ended = runs.cancel_runs(waiting, f"Cancelled by {_name_visitor(visitor)}.")
        if not ended and not commits:
            raise NotCancellable("No run that waits is left to cancel.")
        details: dict[str, Any] = {"runs": ended, **({"filter": words} if words else {})}
        details |= {"commits": len(commits)} if commits else {}
        record_action(visitor, AuditAction.WAITING_CANCELLED, project, **details)
    return ended, len(commits)


def cancel_remeasuring(visitor: Visitor, project: Project) -> int:
    """End what the site measures again by itself, since it was disturbed; how many runs.

    Raises NotCancellable without one.
    """
    with transaction.atomic():
        asked = Run.objects.filter(Run.IS_REMEASURING, project=project)
        ended = runs.cancel_runs(asked, f"Cancelled by {_name_visitor(visitor)}.")
        if not ended:
            raise NotCancellable("No disturbed run is left that would be measured again.")
        record_action(visitor, AuditAction.REMEASURING_CANCELLED, project, runs=ended)
    return ended


def cancel_experiment(visitor: Visitor, experiment: Experiment) -> None:
    """Raises NotCancellable where it has ended, or wasn't asked for by a person or a script."""
    if experiment.purpose not in CANCELLABLE and experiment.state not in Experiment.TERMINAL:
        raise NotCancellable("A regression asked for it and would again: triage the regression to end it.")
    reason = {"code": "cancelled", "person": _name_visitor(visitor)}
    with transaction.atomic():
        if not experiments.cancel_experiments(Experiment.objects.filter(pk=experiment.pk), reason):
            experiment.refresh_from_db(fields=["state"])
            raise NotCancellable(f"Experiment {experiment.pk} had already ended: it is {experiment.state}.")
        record_action(visitor, AuditAction.EXPERIMENT_CANCELLED, experiment.project, experiment)


def _name_visitor(visitor: Visitor) -> str:
    return visitor.user.get_username() if visitor.user else ""
