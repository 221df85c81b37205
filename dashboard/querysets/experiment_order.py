"""The order in which experiments that wait are claimed: one rule for claims, the queue and the overview.

What somebody waits for comes first, in the order in which it was asked for. Then what the site asks for by
itself, the newest commit first: what a whole history asks for at once holds up no new commit. But none waits
for ever: what has waited longest, a day at least, is next once the last three others that its pool began were
all asked for later. Where it gives way to what somebody waits for, it goes on before others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from django.db.models import Case, F, OrderBy, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Now

from dashboard.models import Experiment, Project

LONG_WAIT = timedelta(days=1)
# So many that were asked for later go before what has waited so long, then it has its turn.
MOST_OVERTAKING = 3

POOL = "head_configuration__pool"
_NEWEST_COMMIT_FIRST = Case(
    When(Experiment.IS_AWAITED, then=None), default=F("head_commit__committed_at")
).desc(nulls_last=True)


def order_waiting_experiments(
    rows: QuerySet[Experiment], *first: OrderBy, claimable: QuerySet[Experiment] | None = None
) -> QuerySet[Experiment]:
    """Those rows that wait in the order of claims, with `awaited`; behind what is `first`.

    `claimable`: those among which the one that has waited longest is looked for; all that may begin now where
    none are given.
    """
    if claimable is None:
        quiet = Project.objects.filter(Project.IS_QUIET)
        claimable = Experiment.objects.filter(state=Experiment.State.REQUESTED).exclude(project__in=quiet)
    in_turn = Case(When(pk__in=_overtaken_keys(claimable), then=Value(0)), default=Value(1))
    rows = rows.annotate(awaited=Case(When(Experiment.IS_AWAITED, then=Value(1)), default=Value(0)))
    return rows.order_by(*first, "-awaited", in_turn, _NEWEST_COMMIT_FIRST, "requested_at", "pk")


def _overtaken_keys(claimable: QuerySet[Experiment]) -> QuerySet[Any]:
    """The keys of what has waited long, and longest in its pool, and has its turn."""
    long = claimable.filter(~Experiment.IS_AWAITED, requested_at__lte=Now() - LONG_WAIT)
    longest = long.order_by(POOL, "requested_at", "pk").distinct(POOL).values("pk")
    # What began before it was asked for was asked for before that: it needn't be looked for.
    others = begun_experiments().filter(measuring_at__gt=OuterRef("requested_at")).exclude(pk=OuterRef("pk"))
    began = others.filter(**{POOL: OuterRef(POOL)}).values("requested_at")
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


def take_turns(
    waiting: Sequence[Proof],
    begun: Sequence[Proof],
    now: datetime,
    is_quiet: Callable[[Proof], bool] = lambda _: False,
) -> list[Proof]:
    """What of one pool will be claimed one after the other, if nothing else is asked for meanwhile.

    `waiting` as `order_waiting_experiments` has it, of what the site asked for by itself; `begun`: the last
    that the pool began, MOST_OVERTAKING and one more, the newest first; `is_quiet`: of what isn't begun now.
    """
    left, order, last = list(waiting), list[Proof](), list(begun)
    while left:
        taken = find_next(left, last, now, is_quiet)
        left.remove(taken)
        order.append(taken)
        if not is_quiet(taken):
            last = [taken, *_other_proofs(taken, last)]
    return order


def find_next(
    waiting: Sequence[Proof],
    begun: Iterable[Proof],
    now: datetime,
    is_quiet: Callable[[Proof], bool] = lambda _: False,
) -> Proof:
    """The first that `take_turns` takes of these, one or more."""
    active = (row for row in waiting if not is_quiet(row))
    longest = min(active, key=lambda row: (row.requested_at, row.pk), default=waiting[0])
    overtaking = [row.requested_at for row in _other_proofs(longest, begun)[:MOST_OVERTAKING]]
    is_overtaken = len(overtaking) == MOST_OVERTAKING and min(overtaking) > longest.requested_at
    is_turn = is_overtaken and longest.requested_at <= now - LONG_WAIT
    return longest if is_turn else waiting[0]


def _other_proofs(proof: Proof, rows: Iterable[Proof]) -> list[Proof]:
    return [row for row in rows if row.pk != proof.pk]
