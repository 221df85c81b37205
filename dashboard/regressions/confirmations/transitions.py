"""The states of a confirmation: each transition is one UPDATE that compares id, state and lease."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.contrib.postgres.functions import RandomUUID
from django.db import transaction
from django.db.models import F, QuerySet, Sum
from django.db.models.functions import Now

from dashboard import dispatch
from dashboard.models import Confirmation, Machine, Pair, Pool, Run
from dashboard.regressions import sentinels
from dashboard.regressions.confirmations import turns
from dashboard.regressions.confirmations.assignment import (
    ConfirmationAssignment,
    PairMeasured,
    of_confirmation,
)
from dashboard.regressions.confirmations.weighing import weigh
from dashboard.runs import LeaseLost

State = Confirmation.State
Verdict = Confirmation.Verdict

# Until a machine has measured for so long, no share of its time says anything.
GRACE = timedelta(minutes=20)
LOOK_BACK = timedelta(hours=24)
LOST = f"Its worker was lost {Confirmation.MOST_ATTEMPTS} times: no heartbeat came within the lease."


def claim(pool: str, machine: str) -> ConfirmationAssignment | None:
    """Take the pool's oldest requested confirmation.

    None where none waits, or their projects' share of time is spent.
    """
    with transaction.atomic():
        where = Pool.objects.filter(name=pool).first()
        waiting = Confirmation.objects.filter(state=State.REQUESTED, pool=where)
        holder = Machine.objects.filter(name=machine, pool=where).first()
        if holder is None:
            return None
        # Confirmations go before history, but take a part of the machine's time at most while runs wait.
        waiting = waiting.filter(regression__project__confirmation_share__gt=spent_share(holder))
        row = waiting.order_by("requested_at", "pk").select_for_update(skip_locked=True, of=("self",)).first()
        if row is None:
            return None
        Confirmation.objects.filter(pk=row.pk, state=State.REQUESTED).update(
            state=State.MEASURING,
            attempt=row.attempt + 1,
            lease=uuid4(),
            lease_until=lease_end(),
            machine=holder,
            measuring_at=Now(),
            activity="",
            in_turns=turns.possible(row),
        )
        sentinels.beside(row.series, holder)
        names = ("good__project", "bad", "series__case", "series__metric", "machine")
        return of_confirmation(Confirmation.objects.select_related(*names).get(pk=row.pk))


def spent_share(machine: Machine) -> float:
    """The part of the machine's time that confirmations took lately; none where no run waits for it."""
    waiting = Run.objects.filter(state=Run.State.REQUESTED, pool=machine.pool_id)
    # Nobody waits for a sentinel.
    if not waiting.exclude(origin=Run.Origin.SENTINEL).exists():
        return 0.0
    since = Now() - LOOK_BACK
    ended = Run.objects.filter(machine=machine, finished_at__gt=since, claimed_at__isnull=False)
    runs = ended.aggregate(took=Sum(F("finished_at") - F("claimed_at")))["took"] or timedelta()
    mine = Confirmation.objects.filter(machine=machine, measuring_at__gt=since)
    seconds = float(mine.aggregate(took=Sum("seconds"))["took"] or 0.0)
    whole = runs.total_seconds() + seconds
    return 0.0 if whole < GRACE.total_seconds() else seconds / whole


def heartbeat(assignment: ConfirmationAssignment, activity: str = "") -> bool:
    """Renew the lease and show what it is doing. False: no longer ours, stop."""
    shown: dict[str, Any] = {"activity": activity[:200]} if activity else {}
    return bool(_held(assignment).update(lease_until=lease_end(), **shown))


def add_pair(assignment: ConfirmationAssignment, pair: PairMeasured, commands: Sequence[str] = ()) -> str:
    """Keep a pair and weigh all so far; the verdict ends the confirmation. Empty: another pair is wanted.

    Raises LeaseLost. The pair's index makes it safe to repeat: what is there already isn't added again.
    """
    with transaction.atomic():
        row = _locked(assignment)
        values = asdict(pair)
        _, new = Pair.objects.get_or_create(confirmation=row, index=values.pop("index"), defaults=values)
        row.seconds += pair.seconds if new else 0.0
        row.commands = row.commands or list(commands)
        found = weigh(row)
        row.ratio, row.low, row.high = found.ratio, found.low, found.high
        row.lease_until = lease_end()
        row.save(update_fields=["seconds", "commands", "ratio", "low", "high", "lease_until"])
        if found.verdict:
            conclude(assignment, found.verdict, found.reason)
        return found.verdict


def conclude(assignment: ConfirmationAssignment, verdict: str, reason: str = "") -> None:
    """End a confirmation with its verdict; on commit, what follows from it is decided. Raises LeaseLost."""
    with transaction.atomic():
        row = _locked(assignment)
        Confirmation.objects.filter(pk=row.pk).update(
            state=State.DONE,
            verdict=Verdict(verdict),
            reason=reason[:2000],
            finished_at=Now(),
            lease_until=None,
            activity="",
        )
        dispatch.send_task(dispatch.PROVE, row.regression_id)


def cancel(rows: QuerySet[Confirmation], reason: str) -> int:
    """End confirmations that haven't ended; a holder learns of it at its next heartbeat. How many."""
    return rows.filter(state__in=Confirmation.ACTIVE).update(
        state=State.CANCELLED, reason=reason, finished_at=Now(), lease_until=None, activity=""
    )


def requeue_lost() -> int:
    """Request again what lost its holder, with the pairs that it has; or give it up as undecided.

    How many.
    """
    with transaction.atomic():
        lost = Confirmation.objects.filter(state=State.MEASURING, lease_until__lt=Now())
        given_up = lost.filter(attempt__gte=Confirmation.MOST_ATTEMPTS).update(
            state=State.DONE,
            verdict=Verdict.UNDECIDED,
            reason=LOST,
            lease=RandomUUID(),
            lease_until=None,
            finished_at=Now(),
            activity="",
        )
        again = lost.filter(attempt__lt=Confirmation.MOST_ATTEMPTS).update(
            state=State.REQUESTED, lease=RandomUUID(), lease_until=None, activity=""
        )
    return given_up + again


def release(machine: str) -> int:
    """Request again, at once, what a machine held when its site was stopped; that costs no attempt.

    How many.
    """
    held = Confirmation.objects.filter(state=State.MEASURING, machine__name=machine)
    return held.update(
        state=State.REQUESTED, attempt=F("attempt") - 1, lease=RandomUUID(), lease_until=None, activity=""
    )


def lease_end() -> Any:
    """By the database's clock: those of the machines may differ."""
    return Now() + timedelta(seconds=settings.PACELINE_LEASE_SECONDS)


def _held(assignment: ConfirmationAssignment) -> QuerySet[Confirmation]:
    return Confirmation.objects.filter(
        pk=assignment.confirmation_id, lease=assignment.lease, state=State.MEASURING
    )


def _locked(assignment: ConfirmationAssignment) -> Confirmation:
    row = (
        _held(assignment)
        .select_related("series__metric", "regression__project")
        .select_for_update(of=("self",))
        .first()
    )
    if row is None:
        raise LeaseLost(f"{assignment.name} is no longer attempt {assignment.attempt}'s.")
    return row
