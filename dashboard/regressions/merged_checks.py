"""What was proved of a pull request before its head was merged, as facts for the step at its merge."""

from __future__ import annotations

import math

from paceline.phase_names import spell_metric

from dashboard import experiments, pull_requests
from dashboard.experiments.bounds import WORSE
from dashboard.measured_kinds import MEAN_TIME, is_exact_counter
from dashboard.models import Experiment, Project, Triage
from dashboard.models import Series as SeriesRow
from dashboard.pull_requests.answer import CONTROL_MOVED, PROVED, moved_metrics
from dashboard.pull_requests.case_evaluation import evaluate_case, evaluate_cases
from dashboard.pull_requests.merged import MergedCheck as FoundCheck
from dashboard.regressions.decision import requested_facts
from dashboard.regressions.decision.facts import Commit
from dashboard.regressions.decision.requested_facts import MergedChecks, ReusedProof
from dashboard.regressions.false_alarm_budget import error_of_next_proof
from dashboard.regressions.row_facts import commit_fact

DECIDED = (Experiment.Verdict.CONFIRMED, Experiment.Verdict.REFUTED)
# Of a check that has ended, where the merge base differs from itself, or nobody knows.
UNSURE = (CONTROL_MOVED, PROVED)


def merged_check_facts(project: Project, request: MergedChecks) -> tuple[requested_facts.MergedCheck, ...]:
    """Reads the repository and pairs of experiments; writes nothing but the rows of commits."""
    series = SeriesRow.objects.select_related("metric", "configuration__case").get(pk=request.series.pk)
    case, bad = series.configuration.case, request.bad
    found = pull_requests.merged_checks(project, series.configuration_id, case, bad.branch, bad.hash)
    commits_by_hash = pull_requests.commits_before(project, found)
    reopened = was_reopened(request.regression)
    facts = []
    for check in found:
        if row := commits_by_hash.get(check.merged.before):
            before = commit_fact(row)
            proof = proof_on_branch(project, request, series, check, before)
            expected = None if reopened else intended_up_to(series, check)
            facts.append(requested_facts.MergedCheck(check.check.pk, before, proof, expected))
    return tuple(facts)


def was_reopened(regression: int | None) -> bool:
    """Whether somebody has said that it isn't intended after all."""
    reopenings = Triage.objects.filter(regression=regression, action=Triage.Action.REOPEN)
    return regression is not None and reopenings.exists()


def proof_on_branch(
    project: Project, request: MergedChecks, series: SeriesRow, found: FoundCheck, before: Commit
) -> ReusedProof | None:
    """Only where the very commit holds the head, and both sides hold the code that was measured.

    A machine on which the merge base differed from itself has proved nothing, of any metric if it did in the
    step's time; nor has one of which that wasn't known when the rest of the check was cancelled.
    """
    if found.check.reason.get("code") in UNSURE or not found.same_code:
        return None
    if found.merged.commit != request.bad.hash or series.phase:
        return None
    _, control = evaluate_cases(found.check)
    if series.metric.name in {bounded.metric.name for bounded in moved_metrics(control)}:
        return None
    measured = found.row.experiment
    if experiments.is_outdated(measured):
        return None
    error = error_of_next_proof(project)
    step = experiments.SuspectedStep(
        series.metric, request.before, request.after, error, request.phases_with_step
    )
    result, _ = experiments.evaluate_suspected_step(measured, step)
    if result.verdict not in DECIDED:
        return None
    return ReusedProof(
        check=found.check.pk,
        experiment=measured.pk,
        series=request.series,
        base=before,
        head=request.bad,
        verdict=result.verdict,
        before=request.before,
        after=request.after,
        error=error,
        phases_with_step=request.phases_with_step,
    )


def intended_up_to(series: SeriesRow, found: FoundCheck) -> float | None:
    """How much worse the series may become, as somebody has called it intended; None where nobody has.

    What the check didn't find worse, nobody has seen: memory isn't meant where it was the time. A counter
    that it couldn't tell only explains what else got worse.
    """
    measured = evaluate_case(found.row)
    if not found.check.intended_by or not measured.worse:
        return None
    spelling = spell_metric(series.metric.name, series.phase)
    name = MEAN_TIME[0] if series.metric.name in MEAN_TIME and not series.phase else spelling
    bounded = next((row for row in measured.all_bounded if row.metric.name == name), None)
    if bounded is None:
        return math.inf if is_exact_counter(series) else None
    if bounded.verdict != WORSE:
        return None
    if bounded.is_counted:
        return experiments.largest_growth(found.row.experiment.profiles, name)
    return bounded.high if bounded.logarithmic else None
