"""Branches are judged against the project's branch as it was where they left it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import pytest

from dashboard import repositories
from dashboard.models import Limit, Regression
from dashboard.regressions import advance_proof, judge_run
from dashboard.regressions.series.branch_line import BranchLine, branch_line
from dashboard.sentences.regressions.regressions import regression_title
from tests.dashboard import factories
from tests.dashboard.regressions.planted import History, linear_history

pytestmark = pytest.mark.django_db

MAIN = [f"m{place}" for place in range(13)]
# A branch of two commits that leaves after m9 and is merged before m11.
BRANCH = {"b0": ["m9"], "b1": ["b0"]}
MERGED = linear_history(10) | BRANCH | {"merge": ["m10", "b1"], "m11": ["merge"], "m12": ["m11"]}


def measure_and_judge(history: History, names: Sequence[str], metric: str = "step_time") -> None:
    """Measure and judge commits, in this order.

    Of a case's first points, before anything steps, nothing is to be said: they are judged with the next.
    """
    known = history.project.cases.first()
    case = known or factories.create_case(history.project)
    calm = sum(1 for _ in takewhile(lambda name: history.level(name) == history.level(names[0]), names))
    for index, name in enumerate(names):
        row = history.rows[name]
        noise = factories.run_noise(row.position) if metric == "step_time" else 1.0
        run = factories.store_measured_run(row, case, {metric: history.level(name) * noise})
        if known or index >= calm - 2:
            judge_run(run.pk)


def test_a_branch_is_compared_with_its_merge_base_from_its_first_commits_on() -> None:
    history = History(linear_history(12) | BRANCH, {"b0": 1.4}, main="m12").make(tips=["b1"])
    measure_and_judge(history, [*MAIN, "b0", "b1"])
    found = Regression.objects.get()
    assert (found.first_bad.subject, found.last_good.subject) == ("b0", "m9")
    assert f"since {found.first_bad} “b0” on branch of-b1" in regression_title(found)


def test_what_the_main_branch_did_before_is_not_the_branchs_doing() -> None:
    history = History(linear_history(12) | BRANCH, {"m5": 1.4}, main="m12").make(tips=["b1"])
    measure_and_judge(history, [*MAIN, "b0", "b1"])
    assert Regression.objects.get().first_bad.subject == "m5"


def test_what_the_main_branch_did_since_is_not_compared_with() -> None:
    history = History(linear_history(12) | BRANCH, {"m10": 0.7}, main="m12").make(tips=["b1"])
    measure_and_judge(history, [*MAIN, "b0", "b1"])
    assert not Regression.objects.exists()


def test_a_merged_branchs_regression_does_not_open_again() -> None:
    history = History(MERGED, {"b0": 1.4}, main="m12").make(tips=["b1"])
    measure_and_judge(history, [*MAIN[:11], "b0", "b1", "merge", "m11", "m12"])
    found = Regression.objects.get()
    assert found.first_bad.subject == "b0"
    assert {change.first_bad.subject for change in found.changes.all()} == {"b0", "merge"}


def test_small_steps_of_a_branch_do_not_open_again_at_its_merge() -> None:
    history = History(MERGED, {"b0": 1.03, "b1": 1.03}, main="m12").make(tips=["b1"])
    measure_and_judge(history, [*MAIN[:11], "b0", "b1", "merge", "m11", "m12"], "function_calls")
    found = Regression.objects.get()
    assert (found.first_bad.subject, found.came_gradually) == ("b1", True)
    assert {change.first_bad.subject for change in found.changes.all()} == {"b0", "b1", "merge"}


def test_small_steps_of_the_main_branch_come_along_with_it() -> None:
    parents = linear_history(12) | {"b0": ["m3"], "b1": ["b0"], "b2": ["b1", "m8"], "b3": ["b2"]}
    history = History(parents, {"m5": 1.03, "m6": 1.03}, main="m12").make(tips=["b3"])
    measure_and_judge(history, [*MAIN, "b0", "b1", "b2", "b3"], "function_calls")
    assert Regression.objects.get().first_bad.subject == "m6"


def test_a_merge_that_costs_much_more_than_its_branch_is_a_second_cause() -> None:
    history = History(MERGED, {"b0": 1.2, "merge": 1.5}, main="m12").make(tips=["b1"])
    measure_and_judge(history, [*MAIN[:11], "b0", "b1", "merge", "m11", "m12"])
    assert {regression.first_bad.subject for regression in Regression.objects.all()} == {"b0", "merge"}


def test_a_main_branch_that_is_merged_into_a_branch_brings_its_regression_along() -> None:
    parents = linear_history(12) | {"b0": ["m3"], "b1": ["b0"], "b2": ["b1", "m8"], "b3": ["b2"]}
    history = History(parents, {"m6": 1.4}, main="m12").make(tips=["b3"])
    measure_and_judge(history, [*MAIN, "b0", "b1", "b2", "b3"])
    found = Regression.objects.get()
    assert found.first_bad.subject == "m6"
    assert {change.first_bad.subject for change in found.changes.all()} == {"m6", "b2"}


def test_what_is_refuted_on_a_branch_leaves_the_main_branch_to_itself() -> None:
    history = History(MERGED, {"b0": 1.4}, main="m12").make(tips=["b1"])
    measure_and_judge(history, [*MAIN[:11], "b0", "b1", "merge", "m11", "m12"])
    found = Regression.objects.get()
    for experiment in found.experiments.all():
        factories.end_experiment(experiment, "refuted", ratio=1.0)
    advance_proof(found.pk)
    for experiment in found.experiments.filter(state="requested"):
        factories.end_experiment(experiment, "refuted", ratio=1.0)
    advance_proof(found.pk)
    found.refresh_from_db()
    assert found.state == "refuted"
    assert [change.first_bad.subject for change in found.changes.all()] == ["b0"]


def test_a_repair_on_the_main_branch_closes_a_merged_branchs_regression() -> None:
    parents = MERGED | {"m13": ["m12"], "m14": ["m13"], "m15": ["m14"]}
    history = History(parents, {"b0": 1.4, "m13": 1 / 1.4}, main="m15").make(tips=["b1"])
    measure_and_judge(history, [*MAIN[:11], "b0", "b1", "merge", "m11", "m12", "m13", "m14", "m15"])
    repaired = Regression.objects.get().recovered_by
    assert repaired
    assert repaired.subject == "m13"


def test_a_limit_that_was_crossed_before_the_branch_began_is_not_told_again() -> None:
    history = History(linear_history(12) | BRANCH, {}, main="m12").make(tips=["b1"])
    case = factories.create_case(history.project)
    for name in ("m8", "m9", "b0"):
        run = factories.store_measured_run(history.rows[name], case, {"gpu_utilization": 70})
        series, at = factories.get_series(run, "gpu_utilization"), history.rows[name].position
        Limit.objects.create(series=series, run=run, position=at, minimum=80, value=70, crossed=True)
        judge_run(run.pk)
    assert Regression.objects.get().first_bad.subject == "m8"


def test_a_line_without_its_repository_is_what_is_known_of_the_branch() -> None:
    history = History(linear_history(3), {}, main="m3").make()
    assert branch_line(history.project, "gone") == BranchLine("gone")


def test_a_branch_leaves_the_main_branch_once() -> None:
    parents = linear_history(4) | {"b0": ["m1"], "b1": ["b0", "m3"], "b2": ["b1"]}
    history = History(parents, {}, main="m4").make(tips=["b2"])
    own, fork = repositories.commits_since_fork(history.project.mirror, "of-b2")
    assert (own, fork) == ([history.rows[name].hash for name in ("b0", "b1", "b2")], 1)
