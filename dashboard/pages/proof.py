"""How a regression was proved, for its page: a sentence, the pairs drawn, the steps of the bisection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.charts import pairs as pair_charts
from dashboard.charts import theme, units
from dashboard.models import Change, Confirmation, Pair, Regression
from dashboard.pages import labels
from dashboard.querysets import regressions as regression_queries
from dashboard.regressions.relevance import is_exact_counter, one_measurement
from dashboard.repositories.history import DETACHED

Purpose = Confirmation.Purpose
Verdict = Confirmation.Verdict

VERDICT_LABELS = {
    Verdict.CONFIRMED: "confirmed",
    Verdict.REFUTED: "refuted",
    Verdict.BAD: "has it",
    Verdict.GOOD: "doesn't have it",
    Verdict.BETWEEN: "has a part of it",
    Verdict.UNDECIDED: "undecided",
    Verdict.UNTESTABLE: "doesn't run",
}

EXACT_COUNTER_SENTENCE = (
    "Exact counters need no second measurement: two runs of the same code give the same count."
)

CAPTION = (
    "Each mark is one repetition of both commits, {}: {}. The line is the mean, the band is its interval; "
    "crosses were disturbed by other work and aren't weighed."
)
CAPTION_IN_SEQUENCE = CAPTION.format(
    "one after the other", "circles measured the good one first, diamonds the bad one"
)
CAPTION_IN_TURNS = CAPTION.format(
    "whose steps took turns, thirty times a second",
    "circles began with the good one, diamonds with the bad one",
)


@dataclass(frozen=True, slots=True)
class ConfirmationRow:
    """A confirmation as the page lists it, its `change` as `+38 % [33, 43]`."""

    confirmation: Confirmation
    pairs: list[Pair]
    undisturbed_pairs: int
    state: str
    change: str

    @classmethod
    def from_confirmation(cls, confirmation: Confirmation, regression: Regression) -> ConfirmationRow:
        pairs = list(confirmation.pairs.all())
        verdict = confirmation.verdict
        state = VERDICT_LABELS[Verdict(verdict)] if verdict else confirmation.state
        if confirmation.purpose == Purpose.BRANCH:
            state += ", on the merged branch"
        if not one_measurement(confirmation.series, regression.series):
            state += f": {_lowercase_first(_series_and_case(confirmation))}"
        undisturbed = sum(not pair.disturbed for pair in pairs)
        change = labels.format_change(confirmation) if confirmation.ratio else ""
        return cls(confirmation, pairs, undisturbed, state, change)


def proof_context(regression: Regression, changes: Sequence[Change]) -> dict[str, Any]:
    """The context of the page's section; `proofs` is empty where nothing was or will be measured again."""
    rows = [
        ConfirmationRow.from_confirmation(confirmation, regression)
        for confirmation in regression_queries.regression_confirmations(regression)
    ]
    own, others = _split_by_series(
        regression, [row for row in rows if row.confirmation.purpose == Purpose.CONFIRM]
    )
    drawn = next((row for row in reversed(own or others) if row.pairs), None)
    sentences = [
        _verdict_sentence(regression, own) or (EXACT_COUNTER_SENTENCE if others else ""),
        *_other_series_sentences(others),
        _points_disagreement(regression, changes),
        *_location_sentences(regression),
    ]
    in_turns = drawn is not None and drawn.confirmation.in_turns
    return {
        "proofs": rows,
        "proof_sentence": " ".join(sentence for sentence in sentences if sentence),
        "exact_counter_sentence": EXACT_COUNTER_SENTENCE,
        "proof_figure": _pairs_figure(drawn) if drawn else "",
        "proof_caption": CAPTION_IN_TURNS if in_turns else CAPTION_IN_SEQUENCE,
        "proof_pairs": drawn.pairs if drawn else [],
        "proof_unit": drawn.confirmation.series.metric.unit if drawn else "",
        "proof_seconds": sum(row.confirmation.seconds for row in rows),
    }


def _split_by_series(
    regression: Regression, rows: list[ConfirmationRow]
) -> tuple[list[ConfirmationRow], list[ConfirmationRow]]:
    """(rows of the regression's own series, those of others).

    All count as its own where that series wasn't measured and had to be.
    """
    own = [row for row in rows if one_measurement(row.confirmation.series, regression.series)]
    if not own and not is_exact_counter(regression.series):
        return rows, []
    return own, [row for row in rows if row not in own]


def _points_disagreement(regression: Regression, changes: Sequence[Change]) -> str:
    """What the points of its series say, where interleaved runs contradicted them."""
    own = (change for change in changes if change.series_id == regression.series_id)
    change = next(own, None)
    if regression.state != Regression.State.CONFIRMED or change is None or not change.ratio:
        return ""
    if _interval_contains(regression, change.ratio) and _interval_contains(change, regression.ratio):
        return ""
    return f"The series' points, measured at other hours, moved by {labels.format_change_size(change)}."


def _interval_contains(measured: Regression | Change, ratio: float | None) -> bool:
    """Whether the ratio lies in the interval of a change; without an interval nothing contradicts it."""
    if ratio is None or measured.low is None or measured.high is None:
        return True
    return measured.low <= ratio <= measured.high


def _location_sentences(regression: Regression) -> list[str]:
    """On which branch it is, if not the project's, and inside which merge or range."""
    branch, main = regression.first_bad.branch, regression.project.branch
    side_branch = (
        f"It is on the branch {branch}, which is judged against {main} as it was where the branch left it."
    )
    return [side_branch if branch not in (main, DETACHED) else "", regression.bisected]


def _verdict_sentence(regression: Regression, own: list[ConfirmationRow]) -> str:
    """What the newest confirmation of the whole step says."""
    if not own:
        return ""
    newest = own[-1]
    confirmation = newest.confirmation
    machine, reason = confirmation.machine, confirmation.reason
    effort = (
        f"{newest.undisturbed_pairs} pairs of interleaved runs on {machine} "
        f"in {units.format_duration(confirmation.seconds)}"
    )
    change = f"{_series_prefix(regression, confirmation)}{newest.change}"
    match confirmation.verdict:
        case Verdict.CONFIRMED:
            return f"Confirmed by {effort}: {change}."
        case Verdict.REFUTED:
            return f"Refuted by {effort}: they show {change}."
        case Verdict.UNDECIDED | Verdict.UNTESTABLE:
            return f"Undecided: {reason}".rstrip(".") + "."
    if confirmation.state == Confirmation.State.MEASURING:
        return f"Being measured again on {machine}: {confirmation.activity or 'starting'}."
    if confirmation.state == Confirmation.State.REQUESTED:
        return "Waiting for a machine that measures both commits again, in turn."
    return f"Not measured again: {reason}"


def _other_series_sentences(rows: list[ConfirmationRow]) -> list[str]:
    """What pairs say of other series of the same cause, each by its newest verdict."""
    cancelled = Confirmation.State.CANCELLED
    newest = {row.confirmation.series_id: row for row in rows if row.confirmation.state != cancelled}
    return [_other_series_sentence(row) for row in newest.values()]


def _other_series_sentence(row: ConfirmationRow) -> str:
    name, change = _series_and_case(row.confirmation), f": {row.change}" if row.change else ""
    match row.confirmation.verdict:
        case Verdict.CONFIRMED:
            return f"{name} was confirmed by {row.undisturbed_pairs} pairs{change}."
        case Verdict.REFUTED:
            return f"{name} was refuted by {row.undisturbed_pairs} pairs{change}."
        case Verdict.UNDECIDED | Verdict.UNTESTABLE:
            return f"{name} stayed undecided."
    return f"{name} is measured by pairs too."


def _series_prefix(regression: Regression, confirmation: Confirmation) -> str:
    """Which series the pairs measured, where it isn't the regression's own."""
    if confirmation.series_id == regression.series_id:
        return ""
    return f"{_lowercase_first(_series_and_case(confirmation))} "


def _series_and_case(confirmation: Confirmation) -> str:
    return f"{labels.series_label(confirmation.series)} of {confirmation.series.case}"


def _lowercase_first(name: str) -> str:
    return f"{name[:1].lower()}{name[1:]}"


def _pairs_figure(row: ConfirmationRow) -> str:
    confirmation, metric = row.confirmation, row.confirmation.series.metric
    pairs = [
        pair_charts.DrawnPair(pair.index + 1, pair.good, pair.bad, pair.good_first, pair.disturbed)
        for pair in row.pairs
        if pair.good > 0 or metric.is_exponent
    ]
    if not pairs:
        return ""
    ratio, low, high = confirmation.ratio, confirmation.low, confirmation.high
    return theme.figure_json(pair_charts.draw_pairs(pairs, metric.unit, ratio, low, high, metric.is_exponent))
