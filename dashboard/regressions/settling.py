"""What a regression says once its changes are known: range, size, state; recovered or withdrawn."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any

from django.utils import timezone

from dashboard import alerts
from dashboard.models import Change, Commit, Confirmation, Project, Regression
from dashboard.regressions import confirmations, elsewhere, proofs, repairs, speaking, triage
from dashboard.regressions.grouping import attract
from dashboard.regressions.ranges import Range, narrowed, span
from dashboard.regressions.speaking import Speaking

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
    members = speaking.members(regression)
    found = speaking.of(regression, members)
    if found is None or (regression.limit and not members):
        unproved(regression)
        return None
    good, bad = place(found)
    reach = span(members) if members else Range(good.position, bad.position)
    holders = Regression.objects.filter(project=project, first_bad=bad)
    holder = None if stay else holders.exclude(pk=regression.pk).first()
    if holder:
        theirs = speaking.members(holder)
        if holder.pk in moving and theirs and not span(theirs).overlap(reach):
            raise Occupied
        return merge(project, regression, holder)
    head = found.head
    values = said_by(head) | {"state": found.state, "withdrawn_at": None}
    values["recovered_by_id"] = repairs.repaired_by(project, regression, head)
    if found.state == State.REFUTED:
        elsewhere.release(regression)
    if not stay:
        values |= {"last_good_id": good.pk, "first_bad_id": bad.pk}
    moved = update(regression, values | of_pairs(regression, head, bad))
    if moved:
        attract(project, regression, reach)
    return (regression, head) if moved - {"recovered_by_id"} or not regression.suspects else None


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
    alerts.transfer_deliveries(regression, holder)
    triage.hand_over(regression, holder)
    confirmations.cancel(regression.confirmations.all(), "The regression turned out to be another one.")
    regression.confirmations.update(regression=holder)
    Regression.objects.filter(pk=holder.pk).update(proving=holder.proving or regression.proving)
    withdraw(regression)
    return settle(project, holder)


def place(found: Speaking) -> tuple[Commit, Commit]:
    """The last good and the first bad commit: as a proof bounds them, and within that as the changes do.

    Where the two don't overlap the proof is right: it measured the commits against each other.
    """
    good, bad = narrowed(found.members or [found.head])
    ends, proof = (good.last_good, bad.first_bad), found.proof
    if proof is None or proof.state != State.CONFIRMED:
        return ends
    if Range(ends[0].position, ends[1].position).overlap(proof.range) is None:
        return proof.good, proof.bad
    return (
        max(ends[0], proof.good, key=lambda one: one.position),
        min(ends[1], proof.bad, key=lambda one: one.position),
    )


def said_by(head: Change) -> dict[str, Any]:
    return {name: getattr(head, name) for name in ("series_id", "before", "after", "ratio", "low", "high")}


def of_pairs(regression: Regression, head: Change, bad: Commit) -> dict[str, Any]:
    """The size that interleaved runs measured, where there are any.

    The points' interval may be narrower, but knows nothing of what the machine did between the hours at which
    they were taken.
    Of two causes that detection sees as one step the level after is the first one's too; else it stays that
    of the points, which a second cause may have a part of.
    """
    row = proofs.size_among(regression.confirmations.all(), head.series_id, bad.pk)
    if row is None or row.ratio is None or not head.ratio:
        return {}
    size = {"ratio": row.ratio, "low": row.low, "high": row.high}
    is_part = row.verdict == Confirmation.Verdict.BETWEEN
    return {**size, "after": head.series.metric.level(head.before, row.ratio)} if is_part else size


def unproved(regression: Regression) -> None:
    """What no change speaks for and no pairs have confirmed: withdrawn, unless that is on its way."""
    if regression.limit:
        # The manifest's bound speaks for it, as it did before a change joined it.
        update(regression, {"state": State.CONFIRMED, "proving": False})
        return
    reach = Range(regression.last_good.position, regression.first_bad.position)
    verdict = proofs.of(proofs.done(regression), regression.series, reach)
    if verdict is None and regression.proving and proofs.is_second(regression):
        return
    withdraw(regression)


def withdraw(regression: Regression) -> None:
    if regression.withdrawn_at is None:
        elsewhere.release(regression)
        regression.withdrawn_at = timezone.now()
        regression.save(update_fields=["withdrawn_at", "updated_at"])
