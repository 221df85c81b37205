"""The transitions of a run. Its lease is that of all work; docs/flow.md draws its states."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from dashboard import dispatch, leases
from dashboard.host_protocol import Lease, RunAssignment
from dashboard.leases import LeaseLost
from dashboard.models import Machine, Pool, Run
from dashboard.models.leases import HELD_BESIDE
from dashboard.policy.quiet_projects import quiet_projects
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.runs import logs
from dashboard.runs.assignment import RELATED, assignment_of
from dashboard.runs.errors import WrongState
from dashboard.runs.machines import record_machine

State = Run.State
Failure = Run.Failure

# To each state that a holder moves to, the one state that it moves from.
PRECEDING_STATES = {
    State.PREPARING: State.CLAIMED,
    State.MEASURING: State.PREPARING,
    State.STORING: State.MEASURING,
}
REQUESTED_AGAIN = {"machine": None, "claimed_at": None, "measuring_at": None, "progress": 0}
LOST = f"Its worker was lost {Run.MOST_ATTEMPTS} times: no heartbeat came within the lease."
GIVEN_UP = {"state": State.FAILED, "failure": Failure.LOST, "reason": LOST}

HELD_TOO_LONG = (
    f"Its worker held it {Run.MOST_ATTEMPTS} times for longer than its time_limit and "
    f"{HELD_BESIDE.total_seconds() / 3600:.0f} hours, and handed nothing in: look at its machine's log."
)
GIVEN_UP_HELD = {**GIVEN_UP, "reason": HELD_TOO_LONG}

_CLAIMED_RUN = CompiledQuery(lambda: Run.objects.select_related(*RELATED).filter(pk=Parameter("key")))


def claim_run(pool: str, machine: str) -> RunAssignment | None:
    """Take the pool's most urgent requested run, the oldest of these; None where nothing waits."""
    with transaction.atomic():
        # By the pool's id, so that the waiting runs are asked for nothing else.
        where = Pool.objects.filter(name=pool).first()
        # A sentinel waits for its own machine, what was disturbed for a calmer hour.
        for_machine = Q(only_on=None) | Q(only_on__in=Machine.objects.filter(name=machine))
        due = Q(not_before=None) | Q(not_before__lte=Now())
        waiting = Run.objects.filter(for_machine, due, state=State.REQUESTED, configuration__pool=where)
        # Few projects, mostly none: the claim of the others stays what it is.
        if quiet := quiet_projects():
            waiting = waiting.exclude(configuration__case__project__in=quiet)
        ordered = waiting.order_by("-priority", "requested_at", "id")
        if not ordered.exists():
            return None
        holder = _get_machine(machine, pool)
        key = leases.claim_first(
            ordered,
            state=State.CLAIMED,
            machine=holder,
            fingerprint=holder.fingerprint,
            claimed_at=Now(),
            measuring_at=None,
            progress=0,
            activity="",
        )
        if key is None:
            return None
        (run,) = _CLAIMED_RUN.read_rows(key=key)
        logs.announce_attempt(run)
        return assignment_of(run)


def advance_run(
    lease: Lease,
    state: str,
    box: Mapping[str, Any] | None = None,
    costs: Mapping[str, float] | None = None,
) -> None:
    """Move on to `preparing`, `measuring` or `storing`. Raises LeaseLost, WrongState.

    `box` describes what the code is measured in; known once it is measuring. `costs` are the seconds that its
    host spent around the measurement, by part; known once it is storing.
    """
    if state not in PRECEDING_STATES:
        raise WrongState(f"A holder doesn't move a run to {state}.")
    target = State(state)
    started: dict[str, Any] = {"measuring_at": Now(), "box": box} if target is State.MEASURING else {}
    if target is State.STORING:
        started["host_costs"] = dict(costs or {})
    # Where it is there already, the answer to an earlier call was lost.
    moved = leases.renewable_job(Run, lease).filter(state__in=(PRECEDING_STATES[target], target))
    if not moved.update(state=target, lease_until=leases.lease_end(), activity="", **started):
        raise _transition_refusal(lease, f"be {target}")


def heartbeat_run(lease: Lease, progress: float | None = None, text: str = "", log: str | bytes = "") -> bool:
    """Renew the lease, show progress (0 to 1) and activity, add to the log. False: no longer ours, stop."""
    shown: dict[str, Any] = {} if progress is None else {"progress": min(max(progress, 0.0), 1.0)}
    if text:
        shown["activity"] = logs.one_line(text, 200)
    with transaction.atomic():
        if not leases.renew_lease(Run, lease, **shown):
            return False
        logs.append_log(lease.key, log)
    return True


def fail_run(lease: Lease, kind: str, reason: str, log: str | bytes = "") -> None:
    """End the run as failed, with one sentence. Raises LeaseLost."""
    with transaction.atomic():
        held = leases.held_job(Run, lease)
        sentence = logs.one_line(reason, 2000)
        if not leases.end_job(held, State.FAILED, failure=Failure(kind), reason=sentence):
            raise _transition_refusal(lease, "fail")
        logs.append_log(lease.key, log)
        dispatch.send_task(dispatch.RUN_ENDED, lease.key)


def finish_run(lease: Lease, *, tainted: bool) -> None:
    """From storing to done, inside the transaction that stores the document. Raises LeaseLost, WrongState."""
    storing = leases.held_job(Run, lease).filter(state=State.STORING)
    if not leases.end_job(storing, State.DONE, tainted=tainted, progress=1):
        raise _transition_refusal(lease, "be done")


def cancel_run(run_id: int, by: str) -> bool:
    """End a run that hasn't ended; its holder learns of it at the next heartbeat. False: it had ended."""
    return bool(cancel_runs(Run.objects.filter(pk=run_id), f"Cancelled by {by}."))


def cancel_runs(rows: QuerySet[Run], reason: str) -> int:
    """End those of these runs that haven't ended, with one sentence. How many."""
    with transaction.atomic():
        going = rows.exclude(state__in=Run.TERMINAL).order_by("pk")
        keys = list(going.select_for_update(of=("self",)).values_list("pk", flat=True))
        sentence = logs.one_line(reason, 2000)
        leases.end_job(Run.objects.filter(pk__in=keys), State.CANCELLED, reason=sentence)
        for key in keys:
            dispatch.send_task(dispatch.RUN_ENDED, key)
    return len(keys)


def held_run(lease: Lease) -> Run | None:
    """The run, locked until the transaction ends, where it is still the holder's."""
    return leases.held_job(Run, lease).select_for_update(of=("self",)).first()


def requeue_lost_runs() -> int:
    """Request again the runs whose lease has ended, or that were held for too long; fail those that have been
    lost too often. How many."""
    overdue = Run.objects.filter(Run.IS_OVERDUE)
    held_too_long = _send_ended(*leases.requeue_jobs(overdue, REQUESTED_AGAIN, GIVEN_UP_HELD))
    return held_too_long + _send_ended(*leases.requeue_lost(Run, REQUESTED_AGAIN, GIVEN_UP))


def requeue_held_runs(machine: str, kept: Collection[int] = ()) -> int:
    """As `requeue_lost_runs`, at once, what a machine held that has died and is back. How many."""
    held = Run.objects.filter(machine__name=machine).exclude(pk__in=kept)
    return _send_ended(*leases.requeue_jobs(held, REQUESTED_AGAIN, GIVEN_UP))


def _send_ended(again: list[int], given_up: list[int]) -> int:
    for key in given_up:
        dispatch.send_task(dispatch.RUN_ENDED, key)
    return len(again) + len(given_up)


def release_runs(machine: str, kept: Collection[int] = ()) -> int:
    """Request again, at once, what a machine held when somebody ended its agent; that costs no attempt.

    How many.
    """
    return leases.release_machine(Run, machine, REQUESTED_AGAIN, kept)


def _transition_refusal(lease: Lease, action: str) -> LeaseLost | WrongState:
    run = Run.objects.filter(pk=lease.key).first()
    if run is None:
        return LeaseLost(f"Run {lease.key} is gone.")
    if run.lease == lease.token and run.state in Run.HELD:
        return WrongState(f"Run {run.pk} is {run.state} and so can't {action}.")
    return LeaseLost(f"Run {run.pk} is no longer attempt {lease.attempt}'s: it is {run.state}.")


def _get_machine(name: str, pool: str) -> Machine:
    machine = Machine.objects.filter(name=name, pool__name=pool).first()
    if machine is None:
        record_machine(name, pool)
        machine = Machine.objects.get(name=name)
    return machine
