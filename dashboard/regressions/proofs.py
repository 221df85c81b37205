"""What a regression's confirmations have proved: its state, and the commits between which its cause lies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dashboard.models import Commit, Confirmation, Regression
from dashboard.regressions.ranges import Range

State = Regression.State
Verdict = Confirmation.Verdict
Purpose = Confirmation.Purpose


@dataclass(frozen=True, slots=True)
class Proof:
    """The verdict on a range, by the confirmation that gave it; `good` and `bad` as bisection left them."""

    state: str
    confirmation: Confirmation
    good: Commit
    bad: Commit

    @property
    def range(self) -> Range:
        return Range(self.good.position, self.bad.position)


def of(regression: Regression, span: Range) -> Proof | None:
    """The newest proof that speaks of the range in which detection sees the step; None where none does.

    What was confirmed in a range is confirmed for every range that overlaps it. What was refuted in one is
    refuted only for ranges inside it: the step may lie beside it.
    """
    done = regression.confirmations.filter(state=Confirmation.State.DONE).select_related("good", "bad")
    rows = list(done.order_by("-finished_at", "-pk"))
    for row in rows:
        if row.purpose != Purpose.CONFIRM:
            continue
        seen = Range(row.good.position, row.bad.position)
        if row.verdict == Verdict.CONFIRMED and seen.overlap(span):
            good, bad = bounds(row, rows)
            return Proof(State.CONFIRMED, row, good, bad)
        if row.verdict != Verdict.CONFIRMED and inside(span, seen):
            state = State.REFUTED if row.verdict == Verdict.REFUTED else State.UNDECIDED
            return Proof(state, row, row.good, row.bad)
    return None


def inside(inner: Range, outer: Range) -> bool:
    return outer.good <= inner.good and inner.bad <= outer.bad


def bounds(confirmed: Confirmation, rows: Iterable[Confirmation]) -> tuple[Commit, Commit]:
    """The confirmed range, narrowed by the bisection's verdicts on commits inside it."""
    good, bad = confirmed.good, confirmed.bad
    steps = [row for row in rows if row.purpose == Purpose.BISECT and row.good_id == confirmed.good_id]
    for row in sorted(steps, key=lambda row: row.bad.position):
        middle = row.bad
        if not good.position < middle.position < bad.position:
            continue
        if row.verdict == Verdict.GOOD:
            good = middle
        elif row.verdict in (Verdict.BAD, Verdict.BETWEEN):
            bad = middle
    return good, bad


def size_among(rows: Iterable[Confirmation], bad: int) -> Confirmation | None:
    """The newest interleaved runs that say how much of a step a commit has: all of it or a part."""
    has_it = (Verdict.CONFIRMED, Verdict.BAD, Verdict.BETWEEN)
    found = [row for row in rows if row.bad_id == bad and row.verdict in has_it and row.ratio is not None]
    return max(found, key=lambda row: (row.finished_at or row.requested_at, row.pk), default=None)


def is_second(regression: Regression) -> bool:
    """Is it the rest of a step beside another cause, which nobody but pairs has seen so far?"""
    rows = Confirmation.objects.filter(verdict__in=(Verdict.BETWEEN, Verdict.CONFIRMED))
    others = rows.exclude(regression=regression)
    behind, before = others.filter(bad=regression.last_good_id), others.filter(good=regression.first_bad_id)
    return behind.exists() or before.filter(verdict=Verdict.CONFIRMED).exists()
