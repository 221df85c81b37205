from __future__ import annotations

from typing import Any

import pytest

from dashboard.detection import pairs
from dashboard.models import Case, Channel, Delivery, Experiment, Project, Regression, Run, Series
from dashboard.regressions import false_alarm_budget, judge_run
from tests.dashboard import factories


def test_a_proof_risks_one_in_a_hundred_where_the_budget_allows_it(project: Project, case: Case) -> None:
    for commit in factories.create_commits(project, 10):
        factories.create_run(commit, case)
    assert false_alarm_budget.error_of_next_proof(project) == pairs.ERROR


def test_many_proofs_share_what_the_commits_have_earned(project: Project) -> None:
    made = factories.create_regression(factories.create_commits(project, 12), 5, "step_time", 5)
    Run.objects.update(state="done")  # One measured commit has earned a hundredth.
    risked = []
    for _ in range(8):
        risked.append(false_alarm_budget.error_of_next_proof(project))
        factories.create_experiment(made, made.last_good, made.first_bad, state="done", error=risked[-1])
    assert risked == sorted(risked, reverse=True)
    assert 0.009 < sum(risked) < 0.01
    Experiment.objects.update(state="cancelled")
    assert false_alarm_budget.error_of_next_proof(project) == pytest.approx(0.005)


def test_pairs_that_refute_once_more_risk_no_alarm(project: Project) -> None:
    """What they would confirm is measured anew, and takes its own part of the budget."""
    made = factories.create_regression(factories.create_commits(project, 12), 5, "step_time", 5)
    Run.objects.update(state="done")
    ended: dict[str, Any] = {"state": "done", "error": 0.002}
    measured = factories.create_experiment(made, made.last_good, made.first_bad, **ended)
    left = false_alarm_budget.error_of_next_proof(project)
    factories.create_experiment(made, made.last_good, made.first_bad, pairs_of=measured, **ended)
    assert false_alarm_budget.error_of_next_proof(project) == left < 0.005


def measure_and_judge(project: Project, case: Case, values: list[float]) -> None:
    """As they come; of the first 20 points nothing is to be said: they are judged with the next."""
    line = factories.create_commits(project, len(values))
    measured = [(commit, {"step_time": value}) for commit, value in zip(line, values, strict=True)]
    factories.store_measured_runs(measured[:20], case)
    for commit, told in measured[20:]:
        judge_run(factories.store_measured_run(commit, case, told).pk)


def test_a_clear_suspicion_is_told_to_those_who_ask(project: Project, case: Case) -> None:
    for name, asks in (("eager", True), ("calm", False)):
        Channel.objects.create(project=project, kind="email", address=f"{name}@example.org", suspicions=asks)
    project.risk = {"earned": 0.0, "trust": 0.9}
    project.save()
    measure_and_judge(project, case, factories.noisy_levels((24, 0.010), (4, 0.015)))
    assert Delivery.objects.get().channel.address == "eager@example.org"
    # Kept for the next commit: with each the trust recovers.
    project.refresh_from_db()
    assert 0.9 < project.risk["trust"] < 1


def test_a_new_step_tells_of_no_older_suspicion_of_its_series(project: Project, case: Case) -> None:
    """Such as one that is proved anew: the newest points say nothing of it."""
    measure_and_judge(project, case, factories.noisy_levels((24, 0.010), (24, 0.015)))
    old = Regression.objects.get()
    assert old.proving
    Channel.objects.create(project=project, kind="email", address="eager@example.org", suspicions=True)
    measured = project.commits.count()
    levels = factories.noisy_levels((24, 0.010), (24, 0.015), (4, 0.0225))[measured:]
    later = factories.create_commits(project, len(levels), first=measured)
    for commit, value in zip(later, levels, strict=True):
        judge_run(factories.store_measured_run(commit, case, {"step_time": value}).pk)
    assert Delivery.objects.get().regression_id != old.pk


def test_a_suspicion_that_less_is_learned_is_told_to_nobody(project: Project, case: Case) -> None:
    """Though the manifest names the quality a headline: every later commit may share one seed's bad luck."""
    Channel.objects.create(project=project, kind="email", address="eager@example.org", suspicions=True)
    values = factories.noisy_levels((24, 9.0), (4, 3.0))
    for commit, value in zip(factories.create_commits(project, len(values)), values, strict=True):
        run = factories.store_measured_run(commit, case, {"quality.score": value})
        Series.objects.filter(metric__name="quality.score").update(headline=True, guarded=True)
        judge_run(run.pk)
    assert Regression.objects.get().kind == Regression.Kind.QUALITY
    assert not Delivery.objects.exists()


def test_a_budget_that_allows_nothing_tells_nothing(project: Project, case: Case) -> None:
    Channel.objects.create(project=project, kind="email", address="eager@example.org", suspicions=True)
    project.false_alerts_per_100_commits = 0.01
    project.risk = {"earned": 0.0, "trust": 1e-6}
    project.save()
    measure_and_judge(project, case, factories.noisy_levels((24, 0.010), (4, 0.0115)))
    assert Regression.objects.exists()
    assert not Delivery.objects.exists()


def test_what_was_refuted_lowers_the_trust_in_suspicions(project: Project) -> None:
    false_alarm_budget.count_refuted_alert(project)
    project.refresh_from_db()
    assert project.risk["trust"] < 1
