"""How a regression was proved, for its page: a sentence, the pairs drawn, the steps of the bisection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.charts import pairs as pair_charts
from dashboard.charts import theme, units
from dashboard.models import Change, Confirmation, Pair, Regression
from dashboard.pages import words
from dashboard.querysets import regressions as read
from dashboard.regressions.relevance import is_exact_counter, one_measurement
from dashboard.repositories.history import DETACHED

Purpose = Confirmation.Purpose
Verdict = Confirmation.Verdict

WORDS = {
    Verdict.CONFIRMED: "confirmed",
    Verdict.REFUTED: "refuted",
    Verdict.BAD: "has it",
    Verdict.GOOD: "doesn't have it",
    Verdict.BETWEEN: "has a part of it",
    Verdict.UNDECIDED: "undecided",
    Verdict.UNTESTABLE: "doesn't run",
}

COUNTED = "Exact counters need no second measurement: two runs of the same code give the same count."

CAPTION = (
    "Each mark is one repetition of both commits, {}: {}. The line is the mean, the band holds it; crosses "
    "were disturbed by other work and aren't weighed."
)
IN_SEQUENCE = CAPTION.format(
    "one after the other", "circles measured the good one first, diamonds the bad one"
)
IN_TURNS = CAPTION.format(
    "whose steps took turns, thirty times a second",
    "circles began with the good one, diamonds with the bad one",
)


@dataclass(frozen=True, slots=True)
class _Described:
    """A confirmation as the page lists it. `calm`: its undisturbed pairs; `found`: as `+38 % [33, 43]`."""

    row: Confirmation
    pairs: list[Pair]
    calm: int
    state: str
    found: str

    @classmethod
    def of(cls, row: Confirmation, regression: Regression) -> _Described:
        measured = list(row.pairs.all())
        state = WORDS[Verdict(row.verdict)] if row.verdict else row.state
        if row.purpose == Purpose.BRANCH:
            state += ", on the merged branch"
        if not one_measurement(row.series, regression.series):
            state += f": {_lower(_named(row))}"
        calm = sum(not pair.disturbed for pair in measured)
        return cls(row, measured, calm, state, words.how_much(row) if row.ratio else "")


def proof(regression: Regression, changes: Sequence[Change]) -> dict[str, Any]:
    """The context of the page's section; `proofs` is empty where nothing was or will be measured again."""
    rows = [_Described.of(row, regression) for row in read.confirmations(regression)]
    whole = [one for one in rows if one.row.purpose == Purpose.CONFIRM]
    own, others = _by_series(regression, whole)
    drawn = next((one for one in reversed(own or others) if one.pairs), None)
    sentences = [
        _sentence(regression, own) or (COUNTED if others else ""),
        *_others(others),
        _points(regression, changes),
        *_places(regression),
    ]
    return {
        "proofs": rows,
        "proof_sentence": " ".join(text for text in sentences if text),
        "proof_counted": COUNTED,
        "proof_figure": _figure(drawn) if drawn else "",
        "proof_caption": IN_TURNS if drawn and drawn.row.in_turns else IN_SEQUENCE,
        "proof_pairs": drawn.pairs if drawn else [],
        "proof_unit": drawn.row.series.metric.unit if drawn else "",
        "proof_seconds": sum(one.row.seconds for one in rows),
    }


def _by_series(regression: Regression, whole: list[_Described]) -> tuple[list[_Described], list[_Described]]:
    """Those of the series that speaks, and the others; all of them where it wasn't measured and had to be."""
    own = [one for one in whole if one_measurement(one.row.series, regression.series)]
    if not own and not is_exact_counter(regression.series):
        return whole, []
    return own, [one for one in whole if one not in own]


def _points(regression: Regression, changes: Sequence[Change]) -> str:
    """What the points of its series say, where interleaved runs contradicted them."""
    change = next((one for one in changes if one.series_id == regression.series_id), None)
    if regression.state != Regression.State.CONFIRMED or change is None or not change.ratio:
        return ""
    if _lies_in(change.ratio, regression) and _lies_in(regression.ratio, change):
        return ""
    return f"The series' points, measured at other hours, moved by {words.moved(change)}."


def _lies_in(ratio: float | None, size: Regression | Change) -> bool:
    """Is the ratio in the interval of a size? What has no interval contradicts nothing."""
    return None in (ratio, size.low, size.high) or size.low <= ratio <= size.high  # type: ignore[operator]  # no None


def _places(regression: Regression) -> list[str]:
    """What there is to say about where it is: on another branch, inside a merge, in a range."""
    branch, main = regression.first_bad.branch, regression.project.branch
    elsewhere = (
        f"It is on the branch {branch}, which is judged against {main} as it was where the branch left it."
    )
    return [elsewhere if branch not in (main, DETACHED) else "", regression.bisected]


def _sentence(regression: Regression, own: list[_Described]) -> str:
    """What the newest confirmation of the whole step says, in words."""
    if not own:
        return ""
    last = own[-1]
    row = last.row
    took = f"{last.calm} pairs of interleaved runs on {row.machine} in {units.duration(row.seconds)}"
    match row.verdict:
        case Verdict.CONFIRMED:
            return f"Confirmed by {took}: {_of_series(regression, row)}{last.found}."
        case Verdict.REFUTED:
            return f"Refuted by {took}: they show {_of_series(regression, row)}{last.found}."
        case Verdict.UNDECIDED | Verdict.UNTESTABLE:
            return f"Undecided: {row.reason}".rstrip(".") + "."
    if row.state == Confirmation.State.MEASURING:
        return f"Being measured again on {row.machine}: {row.activity or 'starting'}."
    if row.state == Confirmation.State.REQUESTED:
        return "Waiting for a machine that measures both commits again, in turn."
    return f"Not measured again: {row.reason}"


def _others(others: list[_Described]) -> list[str]:
    """What pairs say of other series that joined the same cause, each by its newest verdict."""
    newest = {one.row.series_id: one for one in others if one.row.state != Confirmation.State.CANCELLED}
    said = []
    for one in newest.values():
        name, found = _named(one.row), f": {one.found}" if one.found else ""
        match one.row.verdict:
            case Verdict.CONFIRMED:
                said.append(f"{name} was confirmed by {one.calm} pairs{found}.")
            case Verdict.REFUTED:
                said.append(f"{name} was refuted by {one.calm} pairs{found}.")
            case Verdict.UNDECIDED | Verdict.UNTESTABLE:
                said.append(f"{name} stayed undecided.")
            case _:
                said.append(f"{name} is measured by pairs too.")
    return said


def _of_series(regression: Regression, row: Confirmation) -> str:
    """What the pairs measured, where that isn't the series that speaks."""
    return "" if row.series_id == regression.series_id else f"{_lower(_named(row))} "


def _named(row: Confirmation) -> str:
    return f"{words.series_name(row.series)} of {row.series.case}"


def _lower(name: str) -> str:
    return f"{name[:1].lower()}{name[1:]}"


def _figure(described: _Described) -> str:
    row, metric = described.row, described.row.series.metric
    drawn = [
        pair_charts.DrawnPair(pair.index + 1, pair.good, pair.bad, pair.good_first, pair.disturbed)
        for pair in described.pairs
        if pair.good > 0 or metric.is_exponent
    ]
    if not drawn:
        return ""
    of_exponents = metric.is_exponent
    return theme.dump(pair_charts.pairs(drawn, metric.unit, row.ratio, row.low, row.high, of_exponents))
