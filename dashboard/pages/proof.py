"""How a regression was proved, for its page: a sentence, the pairs drawn, the steps of the bisection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.models import Change, Experiment, ExperimentPair, Regression, RegressionExperiment, Series
from dashboard.pages.experiment_pairs import pairs_caption, pairs_figure
from dashboard.querysets import regressions as regression_queries
from dashboard.regressions.decision.series_kinds import is_exact_counter, is_same_measurement
from dashboard.repositories import DETACHED
from dashboard.sentences import experiments as sentences
from dashboard.sentences import labels, numbers
from dashboard.sentences.bisections import bisection_sentence

Purpose = Experiment.Purpose
Verdict = Experiment.Verdict

EXACT_COUNTER_SENTENCE = (
    "Exact counters need no second measurement: two runs of the same code give the same count."
)
HAS_STEP = (Verdict.CONFIRMED, Verdict.WHOLE, Verdict.PART)


@dataclass(frozen=True, slots=True)
class ProofRow:
    """An experiment as the page lists it, its `change` as `+38 % [33, 43]`."""

    experiment: Experiment
    series: Series
    pairs: list[ExperimentPair]
    undisturbed_pairs: int
    state: str
    change: str

    @classmethod
    def from_link(cls, link: RegressionExperiment, regression: Regression) -> ProofRow:
        experiment = link.experiment
        pairs = list(experiment.pairs.all())
        state = sentences.experiment_state_label(experiment)
        if experiment.purpose == Purpose.MERGE:
            state += ", on the merged branch"
        if not is_same_measurement(link.series, regression.series):
            state += f": {labels.lower_first(series_and_case(link.series))}"
        undisturbed = sum(not pair.disturbed for pair in pairs)
        change = labels.format_change(experiment)
        return cls(experiment, link.series, pairs, undisturbed, state, change)


def proof_context(regression: Regression, changes: Sequence[Change]) -> dict[str, Any]:
    """The context of the page's section; `proofs` is empty where nothing was or will be measured again."""
    rows = [
        ProofRow.from_link(link, regression) for link in regression_queries.regression_experiments(regression)
    ]
    own, others = _split_by_series(
        regression, [row for row in rows if row.experiment.purpose == Purpose.PROOF]
    )
    drawn = next((row for row in reversed(own or others) if row.pairs), None)
    said = [
        _verdict_sentence(regression, own) or (EXACT_COUNTER_SENTENCE if others else ""),
        *_other_series_sentences(others),
        _points_disagreement(regression, changes),
        *_location_sentences(regression),
    ]
    return {
        "proofs": rows,
        "proof_sentence": " ".join(sentence for sentence in said if sentence),
        "exact_counter_sentence": EXACT_COUNTER_SENTENCE,
        "proof_figure": pairs_figure(drawn.experiment, drawn.pairs) if drawn else "",
        "proof_caption": pairs_caption(drawn.experiment) if drawn else "",
        "proof_pairs": drawn.pairs if drawn else [],
        "proof_unit": drawn.series.metric.unit if drawn else "",
        "proof_seconds": sum(row.experiment.seconds for row in rows),
        "sizing": _sizing_experiment(regression, rows),
    }


def _sizing_experiment(regression: Regression, rows: Sequence[ProofRow]) -> Experiment | None:
    """The newest experiment that says how large the regression is; None where none does."""
    sizing = [
        row.experiment
        for row in rows
        if (row.series.pk, row.experiment.head_commit_id) == (regression.series_id, regression.first_bad_id)
        and row.experiment.verdict in HAS_STEP
        and row.experiment.ratio is not None
    ]
    newest = sorted(sizing, key=lambda row: (row.finished_at or row.requested_at, row.pk))
    return newest[-1] if newest else None


def _split_by_series(regression: Regression, rows: list[ProofRow]) -> tuple[list[ProofRow], list[ProofRow]]:
    """(rows of the regression's own series, those of others).

    All count as its own where that series wasn't measured and had to be.
    """
    own = [row for row in rows if is_same_measurement(row.series, regression.series)]
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
    return [side_branch if branch not in (main, DETACHED) else "", bisection_sentence(regression)]


def _verdict_sentence(regression: Regression, own: list[ProofRow]) -> str:
    """What the newest experiment on the whole step says."""
    if not own:
        return ""
    newest = own[-1]
    experiment = newest.experiment
    machine, reason = experiment.machine, sentences.reason_sentence(experiment.reason)
    effort = (
        f"{newest.undisturbed_pairs} pairs of interleaved runs on {machine} "
        f"in {numbers.format_duration(experiment.seconds)}"
    )
    change = f"{_series_prefix(regression, newest)}{newest.change}"
    match experiment.verdict:
        case Verdict.CONFIRMED:
            return f"Confirmed by {effort}: {change}."
        case Verdict.REFUTED:
            return f"Refuted by {effort}: they show {change}."
        case Verdict.UNDECIDED | Verdict.UNTESTABLE:
            return f"Undecided: {reason}".rstrip(".") + "."
    if experiment.state == Experiment.State.MEASURING:
        return f"Being measured again on {machine}: {experiment.activity or 'starting'}."
    if experiment.state == Experiment.State.REQUESTED:
        return "Waiting for a machine that measures both commits again, in turn."
    return f"Not measured again: {reason}"


def _other_series_sentences(rows: list[ProofRow]) -> list[str]:
    """What pairs say of other series of the same cause, each by its newest verdict."""
    cancelled = Experiment.State.CANCELLED
    newest = {row.series.pk: row for row in rows if row.experiment.state != cancelled}
    return [_other_series_sentence(row) for row in newest.values()]


def _other_series_sentence(row: ProofRow) -> str:
    name, change = series_and_case(row.series), f": {row.change}" if row.change else ""
    match row.experiment.verdict:
        case Verdict.CONFIRMED:
            return f"{name} was confirmed by {row.undisturbed_pairs} pairs{change}."
        case Verdict.REFUTED:
            return f"{name} was refuted by {row.undisturbed_pairs} pairs{change}."
        case Verdict.UNDECIDED | Verdict.UNTESTABLE:
            return f"{name} stayed undecided."
    return f"{name} is measured by pairs too."


def _series_prefix(regression: Regression, row: ProofRow) -> str:
    """Which series the pairs measured, where it isn't the regression's own."""
    if row.series.pk == regression.series_id:
        return ""
    return f"{labels.lower_first(series_and_case(row.series))} "


def series_and_case(series: Series) -> str:
    return f"{labels.series_label(series)} of {series.case}"
