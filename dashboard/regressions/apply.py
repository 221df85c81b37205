"""Writes a decision as rows: the only place that writes a regression. The project is locked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from dashboard import alerts, dispatch, experiments, runs
from dashboard.experiments import ExperimentDesign, Side
from dashboard.models import (
    Change,
    Check,
    Commit,
    Delivery,
    Experiment,
    ExperimentPair,
    Limit,
    Project,
    Regression,
    RegressionExperiment,
    Run,
    Triage,
)
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.regressions import false_alarm_budget
from dashboard.regressions.decision.outcomes import BranchCause, DecidedRow, Decision, Outcome
from dashboard.regressions.decision.primary_change import Size
from dashboard.regressions.decision.requested_facts import ReusedProof, StepExplanation
from dashboard.regressions.decision.wanted_measurements import ResidualCause, WantedExperiment, WantedRun
from dashboard.regressions.judged_rows import read_commits, read_series

# Of a proof's own runs: before history, behind what somebody waits for.
RUN_PRIORITY = 5
SUSPECTED, CONFIRMED = Regression.State.SUSPECTED, Regression.State.CONFIRMED
# At each commit of a bisection so many pairs may be measured: at least, and for each pair of the proof.
FEWEST_BISECTION_PAIRS, BISECTION_PAIRS_PER_PROOF_PAIR = 24, 4
Purpose = Experiment.Purpose


_REGRESSIONS: CompiledQuery[Any] = CompiledQuery(
    lambda: Regression.objects.filter(pk__in_array=Parameter("keys"))
)


def apply_decision(project: Project, branch: str, decision: Decision) -> list[Regression]:
    """Bring the rows in line with a decision, ask for what it wants measured, and tell whom it says.

    Returns the regressions that opened.
    """
    stored = {row.pk: row for row in _REGRESSIONS.read_rows(keys=list(_regression_keys(decision)))}
    if decision.released:
        Change.objects.filter(pk__in=decision.released).update(regression=None)
    if decision.released_limits:
        Limit.objects.filter(pk__in=decision.released_limits).update(regression=None)
    refuted_alerts = [outcome for outcome in decision.outcomes if _is_refuted_alert(outcome, stored)]
    rows = [(outcome, _write_outcome(project, outcome, stored)) for outcome in decision.outcomes]
    for outcome, regression in rows:
        _hand_over(regression, [stored[key] for key in outcome.absorbed])
        if outcome.experiments:
            links = RegressionExperiment.objects.filter(experiment__in=outcome.experiments)
            links.update(regression=regression)
        _keep_changes(branch, outcome, regression)
        if outcome.intended_by_check:
            _triage_as_intended(regression, outcome.intended_by_check)
    for cause in decision.branch_causes:
        _write_branch_cause(cause)
    for outcome, regression in rows:
        _measure_next(project, outcome, regression)
    for residual in decision.residuals:
        _open_residual(project, residual)
    for outcome, regression in rows:
        _notify_channels(outcome, regression)
    for _ in refuted_alerts:
        false_alarm_budget.count_refuted_alert(project)
    return [regression for outcome, regression in rows if outcome.opened]


def delete_with_regressions(rows: QuerySet[Any]) -> None:
    """Delete rows of a removed project: its regressions go with them, which nothing else may write."""
    rows.delete()


def _regression_keys(decision: Decision) -> set[int]:
    keys = {outcome.key for outcome in decision.outcomes if outcome.key}
    return keys | {key for outcome in decision.outcomes for key in outcome.absorbed}


def _is_refuted_alert(outcome: Outcome, stored: dict[int, Regression]) -> bool:
    """True where somebody was notified of a suspicion that an experiment has refuted now."""
    before = stored.get(outcome.key or 0)
    if before is None or outcome.decided is None or before.state != SUSPECTED:
        return False
    return outcome.decided.state == Regression.State.REFUTED and before.deliveries.exists()


def _write_outcome(project: Project, outcome: Outcome, stored: dict[int, Regression]) -> Regression:
    regression = stored[outcome.key] if outcome.key else Regression(project=project)
    if outcome.decided is None:
        _withdraw_regression(regression, outcome.withdrawal)
        return regression
    values = row_values(outcome.decided) | {"withdrawn_at": None, "withdrawal": ""}
    if outcome.decided.state != SUSPECTED or outcome.changes:
        values["residual"] = False
    _save_differences(regression, values)
    return regression


def _withdraw_regression(regression: Regression, reason: str) -> None:
    if regression.withdrawn_at is None:
        _save_differences(regression, {"withdrawn_at": timezone.now(), "withdrawal": reason})


def row_values(decided: DecidedRow) -> dict[str, Any]:
    """The columns of a regression's row by what it is to say."""
    size, explained = decided.size, decided.explained
    values: dict[str, Any] = {
        "last_good_id": decided.last_good.pk,
        "first_bad_id": decided.first_bad.pk,
        "series_id": decided.series.pk,
        "before": size.before,
        "after": size.after,
        "paired_before": size.paired_before,
        "ratio": size.ratio,
        "low": size.low,
        "high": size.high,
        "state": decided.state,
        "proving": decided.proving,
        "recovered_by_id": decided.recovered_by,
        "culprit_id": decided.culprit.pk if decided.culprit else None,
        "bisection": decided.bisection.as_json() if decided.bisection else {},
        "learning": decided.learning.as_json() if decided.learning else {},
        "cause": decided.cause.cause,
        "cause_evidence": [evidence.as_json() for evidence in decided.cause.evidence],
        "decided_for": decided.decided_for,
    }
    if explained:
        values |= {
            "phase": explained.phase,
            "phase_share": explained.phase_share,
            "place": explained.place,
            "place_phase": explained.place_phase,
            "suspects": list(explained.suspects),
            "operations": list(explained.operations),
            "device": dict(explained.device),
            "excerpts": list(explained.excerpts),
            "only_changed_by": explained.only_changed_by,
            "slow_processes": list(explained.slow_processes),
            "explained_for": decided.explained_for,
        }
    return values


def keep_triage(regression: Regression, triaged: str, person: Any) -> None:
    """Write down what people have made of a regression; reopened, it forgets who decided."""
    is_triaged = triaged != Regression.Triaged.OPEN
    _save_differences(
        regression,
        {
            "triaged": triaged,
            "triaged_by": person if is_triaged else None,
            "triaged_at": timezone.now() if is_triaged else None,
        },
    )


def _save_differences(regression: Regression, values: dict[str, Any]) -> None:
    """Save what differs; a row that says nothing new isn't touched."""
    moved = [name for name, value in values.items() if getattr(regression, name) != value]
    for name in moved:
        setattr(regression, name, values[name])
    if regression.pk is None:
        regression.save()
    elif moved:
        columns = [name.removesuffix("_id") for name in moved]
        regression.save(update_fields=[*columns, "updated_at"])


def _keep_changes(branch: str, outcome: Outcome, regression: Regression) -> None:
    if outcome.changes:
        rows = Change.objects.filter(pk__in=outcome.changes).exclude(regression=regression)
        rows.update(regression=regression)
    if outcome.limits:
        Limit.objects.filter(pk__in=outcome.limits).update(regression=regression)
    if outcome.decided is None:
        regression.changes.update(regression=None)
    elif outcome.release_branches:
        on_other_branches = regression.changes.exclude(first_bad__branch=branch)
        on_other_branches.update(regression=None)


def _hand_over(successor: Regression, absorbed: Iterable[Regression]) -> None:
    """Give the changes, triage and messages of regressions to the one that they turned out to be."""
    for regression in absorbed:
        regression.changes.update(regression=successor)
        regression.limits.update(regression=successor)
        alerts.transfer_deliveries(regression, successor)
        _hand_over_triage(regression, successor)
        experiments.cancel_experiments(regression.experiments.all(), {"code": "absorbed"})
        regression.experiment_links.update(regression=successor)
        _withdraw_regression(regression, Regression.Withdrawal.NOT_FOUND)
        _save_differences(regression, {"proving": False})


def _hand_over_triage(regression: Regression, successor: Regression) -> None:
    """What people said of either holds for the one that is left."""
    regression.triages.update(regression=successor)
    if regression.triaged and not successor.triaged:
        triage = {name: getattr(regression, name) for name in ("triaged", "triaged_by_id", "triaged_at")}
        _save_differences(successor, triage)


def _write_branch_cause(cause: BranchCause) -> None:
    Change.objects.filter(pk__in=cause.changes).exclude(regression=cause.key).update(regression=cause.key)
    if cause.repair_known:
        regression = Regression.objects.get(pk=cause.key)
        _save_differences(regression, {"recovered_by_id": cause.recovered_by})
        alerts.announce_changes(regression)


def _measure_next(project: Project, outcome: Outcome, regression: Regression) -> None:
    if outcome.stop or outcome.decided is None:
        code = "triaged" if regression.is_triaged_away else "withdrawn"
        experiments.cancel_experiments(regression.experiments.all(), {"code": code})
    for wanted in outcome.next_step.experiments:
        request_regression_experiment(project, regression, wanted)
    waited = [run for wanted in outcome.next_step.runs if (run := _request_run(wanted))]
    if waited:
        regression.awaited_runs.add(*waited)
    if outcome.next_step.proof:
        reuse_proof(regression, outcome.next_step.proof)


def request_regression_experiment(
    project: Project, regression: Regression, wanted: WantedExperiment
) -> Experiment:
    """An experiment of a regression's proof, weighed against the step that is suspected."""
    series = read_series(wanted.series.pk)
    commits = read_commits([wanted.base.pk, wanted.head.pk])
    test = wanted.purpose == Purpose.PROOF
    design = ExperimentDesign(
        purpose=wanted.purpose,
        question=Experiment.Question.TEST if test else Experiment.Question.PLACE,
        base=Side(commits[wanted.base.pk], series.configuration),
        head=Side(commits[wanted.head.pk], series.configuration),
        metric=series.metric,
        phase=series.phase,
        before=wanted.before,
        after=wanted.after,
        phases_with_step=wanted.phases_with_step,
        error=false_alarm_budget.error_of_next_proof(project),
        most_pairs=None if test else most_bisection_pairs(project, regression),
        by_means_alone=not test and is_proved_by_means(regression),
    )
    experiment = experiments.request_experiment(project, design)
    RegressionExperiment.objects.create(regression=regression, experiment=experiment, series=series)
    return experiment


def most_bisection_pairs(project: Project, regression: Regression) -> int:
    """Of each commit of a bisection: four times as many as proved the step, at most those of a proof.

    To tell the whole of a step from a part takes about four times the pairs that tell it from nothing.
    """
    proof = newest_confirmed_proof(regression).values("pk")[:1]
    proved = ExperimentPair.objects.filter(experiment__in=proof)
    wanted = max(
        FEWEST_BISECTION_PAIRS,
        BISECTION_PAIRS_PER_PROOF_PAIR * proved.filter(disturbed=False).count(),
    )
    return min(project.experiment_pairs, wanted)


def is_proved_by_means(regression: Regression) -> bool:
    """Whether single steps showed less of the step than the means of the pairs when these proved it.

    What comes in few steps, and in other ones each time, single steps find in no commit.
    """
    return newest_confirmed_proof(regression).values_list("by_steps", flat=True).first() is False


def newest_confirmed_proof(regression: Regression) -> QuerySet[Experiment]:
    proofs = regression.experiments.filter(
        question=Experiment.Question.TEST, verdict=Experiment.Verdict.CONFIRMED
    )
    return proofs.order_by("-pk")


def reuse_proof(regression: Regression, proof: ReusedProof) -> None:
    """Keep what another experiment's pairs say as an experiment of the regression, which has ended already.

    On commit it is acted upon as any other that ends.
    """
    measured = Experiment.objects.select_related("project", "machine", "metric").get(pk=proof.experiment)
    series = read_series(proof.series.pk)
    commits = read_commits([proof.base.pk, proof.head.pk])
    base, head = (Side(commits[commit.pk], series.configuration) for commit in (proof.base, proof.head))
    reason = (
        {"code": "measured for another regression", "regression": proof.regression}
        if proof.check is None
        else {"code": "proved on the branch", "check": proof.check}
    )
    step = experiments.SuspectedStep(
        series.metric, proof.before, proof.after, proof.error, proof.phases_with_step
    )
    experiment = experiments.reuse_experiment(measured, Purpose.PROOF, base, head, step, reason)
    RegressionExperiment.objects.create(regression=regression, experiment=experiment, series=series)
    dispatch.send_task(dispatch.PROVE, regression.pk)


def _triage_as_intended(regression: Regression, check_id: int) -> None:
    """Triage it as somebody has triaged its pull request, before the merge."""
    check = Check.objects.select_related("intended_person").get(pk=check_id)
    keep_triage(regression, Regression.Triaged.INTENDED, check.intended_person)
    account = "" if check.intended_person else check.intended_by
    Triage.objects.create(
        regression=regression,
        person=check.intended_person,
        account=account,
        merged_check=check,
        action=Triage.Action.INTENDED,
    )


def _request_run(wanted: WantedRun) -> Run | None:
    """A run as the newest one of the series was measured; None where the series has none."""
    done = Run.objects.filter(state=Run.State.DONE, points__series=wanted.series.pk)
    pattern = done.select_related("configuration__pool").order_by("-pk").first()
    if pattern is None:
        return None
    return runs.repeat_run(pattern, Commit.objects.get(pk=wanted.commit.pk), priority=RUN_PRIORITY)


def _open_residual(project: Project, residual: ResidualCause) -> None:
    """Prove the rest of a step between two commits, as a regression of its own.

    What was withdrawn at this commit was an earlier step that detection saw there: nothing that was found out
    of that one is said of the rest. Where pairs have measured that one it keeps its row: of the rest they
    know nothing.
    """
    ratio = residual.series.metric.ratio(residual.before, residual.after)
    size = Size(residual.before, residual.after, ratio, None, None)
    decided = DecidedRow(
        residual.good,
        residual.bad,
        residual.series,
        size,
        SUSPECTED,
        proving=True,
        explained=StepExplanation(),
    )
    answered = RegressionExperiment.objects.filter(
        regression=OuterRef("pk"), experiment__state=Experiment.State.DONE
    )
    there = Regression.objects.filter(~Exists(answered), project=project, first_bad=residual.bad.pk)
    there = there.exclude(withdrawn_at=None)
    regression = there.order_by("-withdrawn_at").first() or Regression(project=project)
    _save_differences(
        regression,
        row_values(decided) | {"residual": True, "withdrawn_at": None, "withdrawal": ""},
    )
    asked = WantedExperiment(
        Purpose.PROOF, residual.good, residual.bad, residual.series, residual.before, residual.after
    )
    request_regression_experiment(project, regression, asked)


def _notify_channels(outcome: Outcome, regression: Regression) -> None:
    """What opens or has grown enough, and to those who were notified of it what has become of it."""
    if outcome.decided is not None and outcome.announce_again:
        # Before those are notified that weren't: for them it is no second time.
        alerts.announce_again(regression)
    if outcome.decided is not None and (outcome.announce or outcome.announce_again):
        alerts.announce_regression(regression, Delivery.Event.OPENED)
    if outcome.decided is not None and outcome.resized:
        before = None if outcome.ratio_before is None else 100 * (outcome.ratio_before - 1)
        alerts.announce_growth(regression, before)
    alerts.announce_changes(regression)
