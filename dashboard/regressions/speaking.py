"""Which change speaks for a regression: of those that interleaved runs have confirmed the first, if any are.

A verdict is on one series. A step time that joins a cause which peak memory has proved is a suspicion like
any other: it speaks once pairs of its own confirm it, and if they refute it, the cause stays proved.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

from dashboard.models import Change, Confirmation, Regression, Series
from dashboard.regressions import elsewhere, proofs
from dashboard.regressions.grouping import members_of, price_of_improvement
from dashboard.regressions.proofs import Proof
from dashboard.regressions.ranges import Range, span
from dashboard.regressions.relevance import family, headline, is_exact_counter, one_measurement, size

State = Regression.State

# Of two series that measure alike, the one that isn't proved is measured only if its step is so much larger.
LARGER = 1.5


@dataclass(frozen=True, slots=True)
class Speaking:
    """The change that speaks for a regression, its state, and what proved it (None: nothing, or a counter).

    `head` isn't stored where detection sees no change of the series that pairs confirmed. `members` tell the
    place: all changes but those that were refuted. `louder` would speak, had it been measured. `refuted` ones
    stand beside a head that wasn't.
    """

    head: Change
    state: str
    proof: Proof | None
    members: list[Change]
    louder: Change | None = None
    refuted: Sequence[Change] = ()


def members(regression: Regression) -> list[Change]:
    """The changes that may speak for it: of its branch, for the worse, and no improvement's price."""
    found = elsewhere.at_home(regression, members_of([regression.pk]).get(regression.pk, []))
    return [one for one in found if not price_of_improvement(one)]


def of(regression: Regression, changes: Sequence[Change] | None = None) -> Speaking | None:
    """Who speaks for a regression; None where it has no change, and no pairs confirmed it.

    `changes`: its members, where they have been read already.
    """
    found = members(regression) if changes is None else list(changes)
    rows = proofs.done(regression)
    return of_proved(regression, found, rows) or of_suspected(found, rows)


def of_proved(
    regression: Regression, found: Sequence[Change], rows: Sequence[Confirmation]
) -> Speaking | None:
    """One that pairs confirmed: a change, or a series whose change is gone; None where there is none."""
    whole = span(found) if found else Range(regression.last_good.position, regression.first_bad.position)

    def verdict(series: Series) -> Proof | None:
        """Where detection sees the series' own step; else where it sees all of them."""
        same = [one for one in found if one_measurement(one.series, series)]
        own = proofs.of(rows, series, span(same)) if same else None
        return own or proofs.of(rows, series, whole)

    known = [verdict(row.series) for row in rows if row.purpose == Confirmation.Purpose.CONFIRM]
    cause = next((one for one in known if one and one.state == State.CONFIRMED), None)
    if cause is None:
        return None
    noisy = [one for one in found if not is_exact_counter(one.series)]
    verdicts = [(one, verdict(one.series) or proofs.within(rows, one.series, cause.range)) for one in noisy]
    proved = [(one, proof) for one, proof in verdicts if proof and proof.state == State.CONFIRMED]
    if not any(one_measurement(one.series, cause.confirmation.series) for one, _ in proved):
        proved.append((unseen(regression, cause), cause))
    sized = [as_measured(one, proof) for one, proof in proved]
    first = headline(sized)
    head, proof = proved[next(place for place, one in enumerate(sized) if one is first)]
    # What was measured at the head's commits, whatever it showed, isn't measured there once more.
    waiting = [one for one in noisy if not one.innocent and not proofs.within(rows, one.series, proof.range)]
    refuted = [one for one, proof in verdicts if proof and proof.state == State.REFUTED]
    kept = [one for one in found if one not in refuted]
    return Speaking(head, State.CONFIRMED, proof, kept, louder(first, waiting), refuted)


def of_suspected(found: Sequence[Change], rows: Sequence[Confirmation]) -> Speaking | None:
    """The loudest that wasn't refuted, where no pairs confirmed any; exact counters are their own proof."""
    left = list(found)
    fallen: dict[Change, Proof] = {}
    while left:
        head = headline(left)
        if is_exact_counter(head.series):
            return Speaking(head, State.CONFIRMED, None, left, refuted=list(fallen))
        proof = proofs.of(rows, head.series, span(left))
        if proof is None or proof.state == State.CONFIRMED:
            return Speaking(head, proof.state if proof else State.SUSPECTED, proof, left)
        same = [one for one in left if one_measurement(one.series, head.series)]
        fallen |= dict.fromkeys(same, proof)
        left = [one for one in left if one not in same]
    if not found:
        return None
    undecided = [one for one, proof in fallen.items() if proof.state == State.UNDECIDED]
    head = headline(undecided or found)
    return Speaking(head, fallen[head].state, fallen[head], list(found))


def louder(head: Change, others: Sequence[Change]) -> Change | None:
    """The one that would speak in the place of a head, if its step is worth pairs of its own.

    Of the head's pool: another one's machines may be gone, and an alert would wait for them.
    """
    first = headline([head, *(one for one in others if one.series.pool_id == head.series.pool_id)])
    if first is head:
        return None
    alike = family(first.series) == family(head.series)
    return first if not alike or size(first) >= LARGER * size(head) else None


def as_measured(change: Change, proof: Proof) -> Change:
    """The change with the size that pairs have measured; its points were measured at other hours."""
    row = proof.confirmation
    if row.series_id != change.series_id or row.ratio is None:
        return change
    sized = copy(change)
    sized.ratio = row.ratio
    return sized


def unseen(regression: Regression, proof: Proof) -> Change:
    """The change that pairs confirmed and no row of detection's shows, as they measured it. Not stored."""
    row = proof.confirmation
    before = regression.before if regression.series_id == row.series_id else row.before
    return Change(
        series=row.series,
        last_good=proof.good,
        first_bad=proof.bad,
        position=proof.bad.position,
        direction=Change.Direction.REGRESSION,
        before=before,
        after=row.series.metric.level(before, row.ratio) if row.ratio else row.after,
        ratio=row.ratio,
        low=row.low,
        high=row.high,
    )
