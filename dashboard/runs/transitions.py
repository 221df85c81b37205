"""The transitions of a run: each is one UPDATE that compares id, state and lease. docs/flow.md draws them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from dashboard.models import Machine, Pool, Run
from dashboard.runs import logs
from dashboard.runs.assignment import Assignment, of_run
from dashboard.runs.errors import LeaseLost, WrongState
from dashboard.runs.machines import machine_seen

State = Run.State
Failure = Run.Failure

# To each state that a holder moves to, the one state that it moves from.
BEFORE = {
    State.PREPARING: State.CLAIMED,
    State.MEASURING: State.PREPARING,
    State.STORING: State.MEASURING,
}


def lease_end() -> Any:
    """By the database's clock: those of the machines may differ."""
    return Now() + timedelta(seconds=settings.PACELINE_LEASE_SECONDS)


def claim(pool: str, machine: str) -> Assignment | None:
    """Take the pool's most urgent requested run, the oldest of these; None where nothing waits."""
    with transaction.atomic():
        # By the pool's id, so that one step in the index of waiting runs finds it.
        where = Pool.objects.filter(name=pool).first()
        # A sentinel waits for its own machine.
        mine = Q(only_on=None) | Q(only_on__in=Machine.objects.filter(name=machine))
        waiting = Run.objects.filter(mine, state=State.REQUESTED, pool=where)
        # Skipping what others are just taking: two claims never wait for each other nor share a run.
        run = waiting.order_by("-priority", "requested_at", "id").select_for_update(skip_locked=True).first()
        if run is None:
            return None
        holder = _machine(machine, pool)
        Run.objects.filter(pk=run.pk, state=State.REQUESTED).update(
            state=State.CLAIMED,
            attempt=run.attempt + 1,
            lease=uuid4(),
            lease_until=lease_end(),
            machine=holder,
            fingerprint=holder.fingerprint,
            claimed_at=Now(),
            measuring_at=None,
            progress=0,
            activity="",
        )
        run = Run.objects.select_related("commit__project", "case", "pool", "machine").get(pk=run.pk)
        logs.announce_attempt(run)
        return of_run(run)


def advance(assignment: Assignment, state: str) -> None:
    """Move on to `preparing`, `measuring` or `storing`. Raises LeaseLost, WrongState."""
    target = State(state)
    if target not in BEFORE:
        raise WrongState(f"A holder doesn't move a run to {target}.")
    started: dict[str, Any] = {"measuring_at": Now()} if target is State.MEASURING else {}
    moved = _held(assignment).filter(state=BEFORE[target])
    if not moved.update(state=target, lease_until=lease_end(), activity="", **started):
        raise _refusal(assignment, f"be {target}")


def heartbeat(
    assignment: Assignment, progress: float | None = None, text: str = "", log: str | bytes = ""
) -> bool:
    """Renew the lease, show progress (0 to 1) and activity, add to the log. False: no longer ours, stop."""
    shown: dict[str, Any] = {} if progress is None else {"progress": min(max(progress, 0.0), 1.0)}
    if text:
        shown["activity"] = logs.line(text, 200)
    with transaction.atomic():
        if not _held(assignment).update(lease_until=lease_end(), **shown):
            return False
        logs.append(assignment.run_id, log)
    return True


def fail(assignment: Assignment, kind: str, reason: str, log: str | bytes = "") -> None:
    """End the run as failed, with one sentence. Raises LeaseLost."""
    failure = Failure(kind)
    with transaction.atomic():
        ended = _held(assignment).update(
            state=State.FAILED,
            failure=failure,
            reason=logs.line(reason, 2000),
            finished_at=Now(),
            lease_until=None,
            activity="",
        )
        if not ended:
            raise _refusal(assignment, "fail")
        logs.append(assignment.run_id, log)


def finish(assignment: Assignment, *, tainted: bool) -> None:
    """From storing to done, inside the transaction that stores the document. Raises LeaseLost, WrongState."""
    done = (
        _held(assignment)
        .filter(state=State.STORING)
        .update(
            state=State.DONE, tainted=tainted, finished_at=Now(), lease_until=None, progress=1, activity=""
        )
    )
    if not done:
        raise _refusal(assignment, "be done")


def cancel(run_id: int, by: str) -> bool:
    """End a run that hasn't ended; its holder learns of it at the next heartbeat. False: it had ended."""
    return bool(
        Run.objects.filter(pk=run_id)
        .exclude(state__in=Run.TERMINAL)
        .update(
            state=State.CANCELLED,
            reason=logs.line(f"Cancelled by {by}.", 2000),
            finished_at=Now(),
            lease_until=None,
            activity="",
        )
    )


def held(assignment: Assignment) -> Run | None:
    """The run, locked until the transaction ends, where it is still the holder's."""
    return _held(assignment).select_for_update(of=("self",)).first()


def _held(assignment: Assignment) -> QuerySet[Run]:
    return Run.objects.filter(pk=assignment.run_id, lease=assignment.lease, state__in=Run.HELD)


def _refusal(assignment: Assignment, wish: str) -> LeaseLost | WrongState:
    run = Run.objects.filter(pk=assignment.run_id).first()
    if run is None:
        return LeaseLost(f"Run {assignment.run_id} is gone.")
    if run.lease == assignment.lease and run.state in Run.HELD:
        return WrongState(f"Run {run.pk} is {run.state} and so can't {wish}.")
    return LeaseLost(f"Run {run.pk} is no longer attempt {assignment.attempt}'s: it is {run.state}.")


def _machine(name: str, pool: str) -> Machine:
    machine = Machine.objects.filter(name=name, pool__name=pool).first()
    if machine is None:
        machine_seen(name, pool)
        machine = Machine.objects.get(name=name)
    return machine
