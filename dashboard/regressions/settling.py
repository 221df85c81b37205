"""What a regression says once its changes are known: range, size, state; recovered or withdrawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any

from django.utils import timezone

from dashboard import alerts
from dashboard.models import Change, Commit, Confirmation, Project, Regression
from dashboard.regressions import confirmations, elsewhere, proofs, repairs, triage
from dashboard.regressions.grouping import attract, members_of, price_of_improvement
from dashboard.regressions.proofs import Proof
from dashboard.regressions.ranges import Range, narrowed, span
from dashboard.regressions.relevance import headline, is_exact_counter

State = Regression.State

Settled = tuple[Regression, Change]


class Occupied(Exception):  # noqa: N818 - reads as a fact
    """The commit that a regression moves to is held by another one that is about to move away itself."""


def settle_all(project: Project, regressions: Iterable[Regression]) -> list[Settled]:
    """Settle regressions, those first that stand in nobody's way: with new points several move at once."""
    waiting = {one.pk: one for one in regressions}
    done: list[Settled | None] = []
    while waiting:
        count = len(waiting)
        for key, one in list(waiting.items()):
            try:
                done.append(settle(project, one, waiting.keys() - {key}))
            except Occupied:
                continue
            del waiting[key]
        if len(waiting) == count:
            # They change places among each other: each keeps its commit, and says what its changes say.
            done.extend(settle(project, one, stay=True) for one in waiting.values())
            break
    return [one for one in done if one]


def settle(
    project: Project, regression: Regression, moving: Set[int] = frozenset(), stay: bool = False
) -> Settled | None:
    """Write what the changes say. The regression that holds them and the change that speaks, if it moved.

    Without a change left that may speak, and without a proof, the regression is withdrawn: kept, because it
    may have been told. Raises Occupied where its place is held by one of those that are `moving`; with
    `stay` it keeps its place.
    """
    members = speaking_of(regression)
    if not members:
        return by_proof_alone(project, regression)
    proof = proofs.of(regression, span(members))
    good, bad = place(members, proof)
    holders = Regression.objects.filter(project=project, first_bad=bad)
    holder = None if stay else holders.exclude(pk=regression.pk).first()
    if holder:
        theirs = speaking_of(holder)
        if holder.pk in moving and theirs and not span(theirs).overlap(span(members)):
            raise Occupied
        return merge(project, regression, holder)
    head = headline(members)
    values = said_by(head, members, proof) | {"withdrawn_at": None}
    values["recovered_by_id"] = repairs.repaired_by(project, regression, head)
    if values["state"] == State.REFUTED:
        elsewhere.release(regression)
    if not stay:
        values |= {"last_good_id": good.pk, "first_bad_id": bad.pk}
    moved = update(regression, values | of_pairs(regression, head, bad))
    if moved:
        attract(project, regression, span(members))
    return (regression, head) if moved - {"recovered_by_id"} or not regression.suspects else None


def speaking_of(regression: Regression) -> list[Change]:
    members = elsewhere.at_home(regression, members_of([regression.pk]).get(regression.pk, []))
    return [one for one in members if not price_of_improvement(one)]


def update(regression: Regression, values: dict[str, Any]) -> set[str]:
    """Save what differs; the names of what did."""
    moved = {name for name, value in values.items() if getattr(regression, name) != value}
    for name in moved:
        setattr(regression, name, values[name])
    if "first_bad_id" in moved:
        # What bisection said was said of the commit that it was.
        regression.culprit, regression.bisected = None, ""
        regression.save(update_fields=["culprit", "bisected"])
    if moved:
        regression.save(update_fields=[*moved, "updated_at"])
    return moved


def merge(project: Project, regression: Regression, holder: Regression) -> Settled | None:
    """Two regressions whose first bad commit turned out to be the same one are one."""
    regression.changes.update(regression=holder)
    alerts.hand_over(regression, holder)
    triage.hand_over(regression, holder)
    confirmations.cancel(regression.confirmations.all(), "The regression turned out to be another one.")
    regression.confirmations.update(regression=holder)
    Regression.objects.filter(pk=holder.pk).update(proving=holder.proving or regression.proving)
    withdraw(regression)
    return settle(project, holder)


def place(members: Sequence[Change], proof: Proof | None) -> tuple[Commit, Commit]:
    """The last good and the first bad commit: as a proof bounds them, and within that as the changes do.

    Where the two don't overlap the proof is right: it measured the commits against each other.
    """
    good, bad = narrowed(members)
    ends = good.last_good, bad.first_bad
    if proof is None or proof.state != State.CONFIRMED:
        return ends
    if Range(ends[0].position, ends[1].position).overlap(proof.range) is None:
        return proof.good, proof.bad
    return (
        max(ends[0], proof.good, key=lambda one: one.position),
        min(ends[1], proof.bad, key=lambda one: one.position),
    )


def said_by(head: Change, members: Sequence[Change], proof: Proof | None) -> dict[str, Any]:
    """Exact counters are their own proof; noisy metrics are suspected until interleaved runs tell."""
    if all(is_exact_counter(one.series) for one in members):
        state: str = State.CONFIRMED
    else:
        state = proof.state if proof else State.SUSPECTED
    names = ("series_id", "before", "after", "ratio", "low", "high")
    return {"state": state, **{name: getattr(head, name) for name in names}}


def of_pairs(regression: Regression, head: Change, bad: Commit) -> dict[str, Any]:
    """The size that interleaved runs measured, where there are any.

    The points' interval may be narrower, but knows nothing of what the machine did between the hours at which
    they were taken.
    Of two causes that detection sees as one step the level after is the first one's too; else it stays that
    of the points, which a second cause may have a part of.
    """
    row = proofs.size_among(regression.confirmations.all(), bad.pk)
    if row is None or row.ratio is None or row.series_id != head.series_id or not head.ratio:
        return {}
    size = {"ratio": row.ratio, "low": row.low, "high": row.high}
    is_part = row.verdict == Confirmation.Verdict.BETWEEN
    return {**size, "after": head.series.metric.level(head.before, row.ratio)} if is_part else size


def by_proof_alone(project: Project, regression: Regression) -> Settled | None:
    """What no change speaks for (any more): kept where interleaved runs have confirmed it, else withdrawn."""
    if regression.limit:
        return None  # The manifest's bound speaks for it.
    proof = proofs.of(regression, Range(regression.last_good.position, regression.first_bad.position))
    if proof is None and regression.proving and proofs.is_second(regression):
        return None
    if proof is None or proof.state != State.CONFIRMED:
        withdraw(regression)
        return None
    holder = Regression.objects.filter(project=project, first_bad=proof.bad).exclude(pk=regression.pk).first()
    if holder:
        return merge(project, regression, holder)
    row = proof.confirmation
    metric = regression.series.metric
    after = metric.level(regression.before, row.ratio) if row.ratio else regression.after
    values = {"ratio": row.ratio, "low": row.low, "high": row.high, "after": after, "state": State.CONFIRMED}
    update(regression, values | {"last_good_id": proof.good.pk, "first_bad_id": proof.bad.pk})
    return None


def withdraw(regression: Regression) -> None:
    if regression.withdrawn_at is None:
        elsewhere.release(regression)
        regression.withdrawn_at = timezone.now()
        regression.save(update_fields=["withdrawn_at", "updated_at"])
