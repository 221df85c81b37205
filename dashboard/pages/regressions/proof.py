"""How a regression was proved, for its page: a sentence, the pairs drawn, the steps of the bisection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.measured_kinds import is_exact_counter
from dashboard.models import (
    Change,
    Experiment,
    ExperimentPair,
    Limit,
    Regression,
    RegressionExperiment,
    Series,
)
from dashboard.pages.experiments.pairs import pairs_caption, pairs_figure
from dashboard.querysets.regression_details import StepRuns, measured_again, step_times_beside
from dashboard.regressions.decision.series_kinds import is_same_measurement
from dashboard.sentences.comparisons import experiments as sentences
from dashboard.sentences.formatting.change_sizes import format_change
from dashboard.sentences.formatting.english import lower_first
from dashboard.sentences.formatting.metric_labels import series_and_case
from dashboard.sentences.regressions import proofs
from dashboard.sentences.regressions.bisections import bisection_sentence

Purpose = Experiment.Purpose
Verdict = Experiment.Verdict

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
            state += f": {lower_first(series_and_case(link.series))}"
        undisturbed = sum(not pair.disturbed for pair in pairs)
        change = format_change(experiment)
        return cls(experiment, link.series, pairs, undisturbed, state, change)


def proof_context(
    regression: Regression, changes: Sequence[Change], limits: Sequence[Limit]
) -> dict[str, Any]:
    """The context of the page's section; `proofs` is empty where nothing was or will be measured again."""
    rows = [ProofRow.from_link(link, regression) for link in measured_again(regression, with_pairs=True)]
    own, others = _split_by_series(
        regression, [row for row in rows if row.experiment.purpose == Purpose.PROOF]
    )
    # One that was cancelled, as where two regressions turned out to be one, says nothing beside a verdict.
    ended = [row for row in own if row.experiment.state != Experiment.State.CANCELLED] or own
    drawn = next((row for row in reversed(ended or others) if row.pairs), None)
    if ended:
        newest = ended[-1]
        verdict = proofs.verdict_sentence(
            regression, newest.series, newest.experiment, newest.undisturbed_pairs
        )
    else:
        verdict = proofs.EXACT_COUNTER_SENTENCE if others else ""
    sentences = [
        verdict,
        *(
            proofs.other_series_sentence(row.series, row.experiment, row.undisturbed_pairs)
            for row in _newest_by_series(others)
        ),
        proofs.points_disagreement(regression, changes),
        proofs.side_branch_sentence(regression),
        bisection_sentence(regression),
    ]
    sizing = _sizing_experiment(regression, rows)
    return {
        "proofs": rows,
        "proof_sentence": " ".join(sentence for sentence in sentences if sentence),
        "unproved_sentence": proofs.LIMIT_SENTENCE
        if limits and not changes
        else proofs.EXACT_COUNTER_SENTENCE,
        "proof_figure": pairs_figure(drawn.experiment, drawn.pairs) if drawn else "",
        "proof_caption": pairs_caption(drawn.experiment, drawn.pairs) if drawn else "",
        "proof_pairs": drawn.pairs if drawn else [],
        "proof_unit": drawn.series.metric.unit if drawn else "",
        "proof_seconds": sum(row.experiment.seconds for row in rows),
        "sizing": sizing,
    }


def time_beside_counter(
    regression: Regression, changes: Sequence[Change], measured: Sequence[ProofRow], runs: StepRuns
) -> str:
    """Of a counter that moved alone what became of the step's time; empty where that is reported already."""
    shown_series = [*(change.series for change in changes), *(row.series for row in measured)]
    return proofs.step_time_sentence(step_times_beside(regression, shown_series, runs))


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


def _newest_by_series(rows: Sequence[ProofRow]) -> list[ProofRow]:
    """Of each series the newest row that wasn't cancelled."""
    measured = (row for row in rows if row.experiment.state != Experiment.State.CANCELLED)
    return list({row.series.pk: row for row in measured}.values())
