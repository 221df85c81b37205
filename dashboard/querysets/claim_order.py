"""The order in which experiments that wait are claimed: one rule for claims, the queue and the overview.

What somebody waits for comes first, in the order in which it was asked for. Then what the site asks for by
itself, the newest commit first: what a whole history asks for at once holds up no new commit. But none waits
for ever: what has waited longest, a day at least, is next once the last three that its pool began were all
asked for later.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from django.db.models import Case, F, OrderBy, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Now

from dashboard.models import Experiment

LONG_WAIT = timedelta(days=1)
# So many that were asked for later go before what has waited so long, then it has its turn.
MOST_OVERTAKING = 3

POOL = "head_configuration__pool"
_NEWEST_COMMIT_FIRST = Case(
    When(Experiment.IS_AWAITED, then=None), default=F("head_commit__committed_at")
).desc(nulls_last=True)
_IS_QUIET = Q(project__quiet_from__lte=Now(), project__quiet_until__gt=Now())


def order_claims(
    rows: QuerySet[Experiment], *first: OrderBy, claimable: QuerySet[Experiment] | None = None
) -> QuerySet[Experiment]:
    """Those rows that wait in the order of claims, with `awaited`; behind what is `first`.

    `claimable`: those among which the one that has waited longest is looked for; all that may begin now where
    none are given.
    """
    if claimable is None:
        claimable = Experiment.objects.filter(state=Experiment.State.REQUESTED).exclude(_IS_QUIET)
    in_turn = Case(When(pk__in=_overtaken_keys(claimable), then=Value(0)), default=Value(1))
    rows = rows.annotate(awaited=Case(When(Experiment.IS_AWAITED, then=Value(1)), default=Value(0)))
    return rows.order_by(*first, "-awaited", in_turn, _NEWEST_COMMIT_FIRST, "requested_at", "pk")


def _overtaken_keys(claimable: QuerySet[Experiment]) -> QuerySet[Any]:
    """The keys of what has waited long, and longest in its pool, and has its turn."""
    long = claimable.filter(~Experiment.IS_AWAITED, requested_at__lte=Now() - LONG_WAIT)
    longest = long.order_by(POOL, "requested_at", "pk").distinct(POOL).values("pk")
    began = begun_experiments().filter(**{POOL: OuterRef(POOL)}).values("requested_at")
    overtaken = Q()
    for index in range(MOST_OVERTAKING):
        overtaken &= Q(requested_at__lt=Subquery(began[index : index + 1]))
    return Experiment.objects.filter(overtaken, pk__in=longest).order_by().values("pk")


def begun_experiments() -> QuerySet[Experiment]:
    """What machines have begun of what the site asked for by itself, the newest first."""
    begun = Experiment.objects.filter(~Experiment.IS_AWAITED, measuring_at__isnull=False)
    return begun.order_by("-measuring_at", "-pk")


class WaitingProof(Protocol):
    """An experiment, or what stands for one in a simulation."""

    pk: int
    requested_at: datetime


Proof = TypeVar("Proof", bound=WaitingProof)


def take_turns(waiting: Sequence[Proof], begun: Sequence[datetime], now: datetime) -> list[Proof]:
    """What of one pool will be claimed one after the other, if nothing else is asked for meanwhile.

    `waiting` as `order_claims` has it, of what the site asked for by itself; `begun`: when the last
    MOST_OVERTAKING were asked for that the pool began, the newest first.
    """
    left, order, asked = list(waiting), list[Proof](), list(begun)
    while left:
        taken = find_next(left, asked, now)
        left.remove(taken)
        order.append(taken)
        asked.insert(0, taken.requested_at)
    return order


def find_next(waiting: Sequence[Proof], begun: Sequence[datetime], now: datetime) -> Proof:
    """The first that `take_turns` takes of these, one or more."""
    longest = min(waiting, key=lambda row: (row.requested_at, row.pk))
    overtaking = begun[:MOST_OVERTAKING]
    is_overtaken = len(overtaking) == MOST_OVERTAKING and min(overtaking) > longest.requested_at
    is_turn = is_overtaken and longest.requested_at <= now - LONG_WAIT
    return longest if is_turn else waiting[0]
