"""What a regression's confirmations have proved: the verdict on each series, and where the cause lies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dashboard.models import Commit, Confirmation, Regression, Series
from dashboard.regressions.ranges import Range
from dashboard.regressions.relevance import one_measurement

State = Regression.State
Verdict = Confirmation.Verdict
Purpose = Confirmation.Purpose


@dataclass(frozen=True, slots=True)
class Proof:
    """The verdict on a series in a range, by the confirmation that gave it; `good` and `bad` as bisected."""

    state: str
    confirmation: Confirmation
    good: Commit
    bad: Commit

    @property
    def range(self) -> Range:
        return Range(self.good.position, self.bad.position)


def done(regression: Regression) -> list[Confirmation]:
    """All that was measured for a regression, newest first."""
    rows = regression.confirmations.filter(state=Confirmation.State.DONE)
    names = ("good", "bad", "machine", "series__metric")
    return list(rows.select_related(*names).order_by("-finished_at", "-pk"))


def of(rows: Sequence[Confirmation], series: Series, span: Range) -> Proof | None:
    """The newest proof of a series that speaks of the range in which detection sees the step; None without.

    What was confirmed in a range is confirmed for every range that overlaps it. What was refuted in one is
    refuted only for ranges inside it: the step may lie beside it. `rows`: as `done` gives them.
    """
    for row in of_measurement(rows, series):
        seen = seen_by(row)
        if seen.overlap(span) if row.verdict == Verdict.CONFIRMED else inside(span, seen):
            return proof(row, rows)
    return None


def within(rows: Sequence[Confirmation], series: Series, proved: Range) -> Proof | None:
    """The newest verdict on a series where the cause was proved by another one; None without."""
    found = of_measurement(rows, series)
    row = next((row for row in found if seen_by(row).overlap(proved)), None)
    return proof(row, rows) if row else None


def of_measurement(rows: Iterable[Confirmation], series: Series) -> list[Confirmation]:
    """The confirmations of whole steps that weighed a series, or what is the same measurement."""
    return [row for row in rows if row.purpose == Purpose.CONFIRM and one_measurement(row.series, series)]


def proof(row: Confirmation, rows: Sequence[Confirmation]) -> Proof:
    match row.verdict:
        case Verdict.CONFIRMED:
            return Proof(State.CONFIRMED, row, *bounds(row, rows))
        case Verdict.REFUTED:
            return Proof(State.REFUTED, row, row.good, row.bad)
    return Proof(State.UNDECIDED, row, row.good, row.bad)


def seen_by(row: Confirmation) -> Range:
    return Range(row.good.position, row.bad.position)


def inside(inner: Range, outer: Range) -> bool:
    return outer.good <= inner.good and inner.bad <= outer.bad


def bounds(confirmed: Confirmation, rows: Iterable[Confirmation]) -> tuple[Commit, Commit]:
    """The confirmed range, narrowed by the bisection's verdicts on commits inside it."""
    good, bad = confirmed.good, confirmed.bad
    for row in sorted(steps(rows, confirmed), key=lambda row: row.bad.position):
        middle = row.bad
        if not good.position < middle.position < bad.position:
            continue
        if row.verdict == Verdict.GOOD:
            good = middle
        elif row.verdict in (Verdict.BAD, Verdict.BETWEEN):
            bad = middle
    return good, bad


def steps(rows: Iterable[Confirmation], confirmed: Confirmation) -> list[Confirmation]:
    """The steps of the bisection of a confirmed range, oldest first.

    They are those of other series too, which saw the same cause. What doesn't run does so for all.
    """
    done = [row for row in rows if row.purpose == Purpose.BISECT]
    same = [row for row in done if row.good_id == confirmed.good_id or row.verdict == Verdict.UNTESTABLE]
    return [row for row in reversed(same) if tells(row, confirmed.series)]


def tells(row: Confirmation, series: Series) -> bool:
    """Does a commit's verdict hold for a series? What couldn't be told of another one may be told of this."""
    return row.verdict != Verdict.UNDECIDED or one_measurement(row.series, series)


def size_among(rows: Iterable[Confirmation], series: int, bad: int) -> Confirmation | None:
    """The newest interleaved runs that say how much of a series' step a commit has: all of it or a part."""
    has_it = (Verdict.CONFIRMED, Verdict.BAD, Verdict.BETWEEN)
    of_it = [row for row in rows if (row.series_id, row.bad_id) == (series, bad)]
    found = [row for row in of_it if row.verdict in has_it and row.ratio is not None]
    return max(found, key=lambda row: (row.finished_at or row.requested_at, row.pk), default=None)


def is_second(regression: Regression) -> bool:
    """Is it the rest of a step beside another cause, which nobody but pairs has seen so far?"""
    rows = Confirmation.objects.filter(verdict__in=(Verdict.BETWEEN, Verdict.CONFIRMED))
    others = rows.exclude(regression=regression)
    behind, before = others.filter(bad=regression.last_good_id), others.filter(good=regression.first_bad_id)
    return behind.exists() or before.filter(verdict=Verdict.CONFIRMED).exists()
