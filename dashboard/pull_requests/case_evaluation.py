"""Evaluates the cases of a check: what their experiments say by now."""

from __future__ import annotations

from dashboard import experiments
from dashboard.models import Check, CheckedCase, Experiment
from dashboard.pull_requests.answer import CaseEvaluation
from dashboard.sentences.comparisons.experiments import reason_sentence


def evaluate_cases(check: Check) -> tuple[list[CaseEvaluation], CaseEvaluation | None]:
    """Of each case; apart, that of the base against itself."""
    rows = check.cases.select_related("configuration__case", "experiment__metric")
    evaluated = [(row, evaluate_case(row)) for row in rows.prefetch_related("experiment__pairs")]
    control = next((case for row, case in evaluated if row.is_control), None)
    return [case for row, case in evaluated if not row.is_control], control


def evaluate_case(row: CheckedCase) -> CaseEvaluation:
    """By the pairs so far, also while its experiment goes on."""
    experiment = row.experiment
    own, others = experiments.bound_experiment(experiment, list(experiment.pairs.all()))
    failed = experiment.verdict == Experiment.Verdict.UNTESTABLE
    failure = reason_sentence(experiment.reason) if failed else ""
    ended = experiment.state in Experiment.TERMINAL
    return CaseEvaluation(str(row.configuration.case), own, others, failure, ended)
