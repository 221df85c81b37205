"""How a regression was proved, for its page: a sentence, the pairs drawn, the steps of the bisection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dashboard.charts import pairs as pair_charts
from dashboard.charts import theme, units
from dashboard.models import Change, Confirmation, Regression
from dashboard.pages import words
from dashboard.querysets import regressions as read
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


def proof(regression: Regression, changes: Sequence[Change]) -> dict[str, Any]:
    """The context of the page's section; `proofs` is empty where nothing was or will be measured again."""
    rows = [_described(row) for row in read.confirmations(regression)]
    weighed = [one for one in rows if one["row"].purpose == Purpose.CONFIRM and one["pairs"]]
    drawn = weighed[-1] if weighed else None
    return {
        "proofs": rows,
        "proof_sentence": " ".join(
            text
            for text in (_sentence(regression, rows), _points(regression, changes), *_places(regression))
            if text
        ),
        "proof_figure": _figure(drawn) if drawn else "",
        "proof_caption": IN_TURNS if drawn and drawn["row"].in_turns else IN_SEQUENCE,
        "proof_pairs": drawn["pairs"] if drawn else [],
        "proof_seconds": sum(one["row"].seconds for one in rows),
    }


def _described(row: Confirmation) -> dict[str, Any]:
    measured = list(row.pairs.all())
    state = WORDS[Verdict(row.verdict)] if row.verdict else row.state
    if row.purpose == Purpose.BRANCH:
        state += ", on the merged branch"
    # What it found, as a bisection step too: `+38 % [33, 43]`.
    found = words.how_much(row) if row.ratio else ""
    calm = sum(not pair.disturbed for pair in measured)
    return {"row": row, "pairs": measured, "calm": calm, "state": state, "found": found}


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


def _sentence(regression: Regression, rows: list[dict[str, Any]]) -> str:
    """What the newest confirmation of the whole step says, in words."""
    whole = [one for one in rows if one["row"].purpose == Purpose.CONFIRM]
    if not whole:
        return ""
    last = whole[-1]
    row = last["row"]
    took = f"{last['calm']} pairs of interleaved runs on {row.machine} in {units.duration(row.seconds)}"
    match row.verdict:
        case Verdict.CONFIRMED:
            return f"Confirmed by {took}: {_of_series(regression, row)}{last['found']}."
        case Verdict.REFUTED:
            return f"Refuted by {took}: they show {_of_series(regression, row)}{last['found']}."
        case Verdict.UNDECIDED | Verdict.UNTESTABLE:
            return f"Undecided: {row.reason}".rstrip(".") + "."
    if row.state == Confirmation.State.MEASURING:
        return f"Being measured again on {row.machine}: {row.activity or 'starting'}."
    if row.state == Confirmation.State.REQUESTED:
        return "Waiting for a machine that measures both commits again, in turn."
    return f"Not measured again: {row.reason}"


def _of_series(regression: Regression, row: Confirmation) -> str:
    """What the pairs measured, where the title is of another series that joined the same cause since."""
    if row.series_id == regression.series_id:
        return ""
    name = words.series_name(row.series)
    return f"{name[:1].lower()}{name[1:]} of {row.series.case} "


def _figure(described: dict[str, Any]) -> str:
    row, metric = described["row"], described["row"].series.metric
    drawn = [
        pair_charts.DrawnPair(pair.index + 1, pair.good, pair.bad, pair.good_first, pair.disturbed)
        for pair in described["pairs"]
        if pair.good > 0 or metric.is_exponent
    ]
    if not drawn:
        return ""
    of_exponents = metric.is_exponent
    return theme.dump(pair_charts.pairs(drawn, metric.unit, row.ratio, row.low, row.high, of_exponents))
