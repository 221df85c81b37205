"""What the experiments of a check say by now."""

from __future__ import annotations

from dashboard import experiments
from dashboard.models import Check, CheckedCase, Experiment
from dashboard.pull_requests.answer import MeasuredCase
from dashboard.sentences.experiments import reason_sentence


def measured_cases(check: Check) -> tuple[list[MeasuredCase], MeasuredCase | None]:
    """Of each case; apart, that of the base against itself."""
    rows = check.cases.select_related("configuration__case", "experiment__metric")
    measured = [(row, measure_case(row)) for row in rows.prefetch_related("experiment__pairs")]
    control = next((case for row, case in measured if row.is_control), None)
    return [case for row, case in measured if not row.is_control], control


def measure_case(row: CheckedCase) -> MeasuredCase:
    experiment = row.experiment
    own, others = experiments.bound_experiment(experiment, list(experiment.pairs.all()))
    failed = experiment.verdict == Experiment.Verdict.UNTESTABLE
    failure = reason_sentence(experiment.reason) if failed else ""
    ended = experiment.state in Experiment.TERMINAL
    return MeasuredCase(str(row.configuration.case), own, others, failure, ended)
