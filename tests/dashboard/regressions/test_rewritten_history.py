"""Commits whose branch lost them: what was judged by them isn't said any more."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard import dispatch
from dashboard.models import Case, Change, Commit, Delivery, Experiment, Project, Regression, SeriesLatest
from dashboard.regressions import history_rewritten, judge_run, sweep_proofs
from dashboard.repositories import DETACHED
from tests.dashboard import factories
from tests.dashboard.regressions.test_limit_violations import measure_and_judge

SLOW = factories.noisy_levels((6, 0.010), (4, 0.014))


@pytest.fixture
def line(project: Project) -> list[Commit]:
    """Ten commits, of which the last four are slower, judged."""
    return measure_line(project, factories.create_case(project), SLOW)


def measure_line(project: Project, case: Case, levels: list[float]) -> list[Commit]:
    """As they come; of the first four points nothing is to be said: they are judged with the next."""
    line = factories.create_commits(project, len(levels))
    measured = [(commit, {"step_time": value}) for commit, value in zip(line, levels, strict=True)]
    factories.store_measured_runs(measured[:4], case)
    for commit, values in measured[4:]:
        judge_run(factories.store_measured_run(commit, case, values).pk)
    return line


def abandon_commits(commits: list[Commit]) -> list[int]:
    """As a trigger does that finds the branch without them."""
    keys = [commit.pk for commit in commits]
    Commit.objects.filter(pk__in=keys).update(branch=DETACHED, left_branch="main")
    return keys


def test_a_regression_of_abandoned_commits_is_withdrawn(project: Project, line: list[Commit]) -> None:
    regression = Regression.objects.get()
    history_rewritten(project.pk, abandon_commits(line[6:]), ["main"])
    regression.refresh_from_db()
    assert regression.withdrawn_at is not None
    assert regression.withdrawal == Regression.Withdrawal.REWRITTEN
    assert not Change.objects.exists()
    assert {row.state for row in regression.experiments.all()} == {Experiment.State.CANCELLED}
    latest = SeriesLatest.objects.get()
    assert (latest.position, latest.run.commit) == (5, line[5])
    assert latest.level == pytest.approx(0.010, rel=0.01)


def test_a_proved_one_is_withdrawn_too(project: Project, line: list[Commit]) -> None:
    regression = Regression.objects.get()
    Regression.objects.update(state=Regression.State.CONFIRMED, proving=False)
    factories.create_ended_experiment(regression, "whole", line[5], line[6], ratio=1.4)
    history_rewritten(project.pk, abandon_commits(line[6:]), ["main"])
    regression.refresh_from_db()
    assert regression.withdrawal == Regression.Withdrawal.REWRITTEN
    assert not Delivery.objects.exists()


def test_what_stays_on_the_branch_stays(project: Project, line: list[Commit]) -> None:
    before = Regression.objects.values().get()
    history_rewritten(project.pk, abandon_commits(line[9:]), ["main"])
    after = Regression.objects.values().get()
    assert (after["withdrawn_at"], after["first_bad_id"]) == (None, before["first_bad_id"])
    assert after["state"] == before["state"]
    assert SeriesLatest.objects.get().position == 8


def test_the_commits_in_their_place_are_judged_by_themselves(project: Project, line: list[Commit]) -> None:
    history_rewritten(project.pk, abandon_commits(line[6:]), ["main"])
    case = Case.objects.get()
    for position in range(6, 10):
        commit = factories.create_commit(project, position, name=f"{position:040x}")
        judge_run(factories.store_measured_run(commit, case, {"step_time": SLOW[position - 6]}).pk)
    assert not Regression.objects.filter(withdrawn_at=None).exists()
    assert not Change.objects.exists()


def test_a_repair_that_was_abandoned_repairs_nothing(project: Project) -> None:
    levels = factories.noisy_levels((6, 0.010), (6, 0.014), (6, 0.010))
    line = measure_line(project, factories.create_case(project), levels)
    regression = Regression.objects.get()
    assert regression.recovered_by == line[12]
    history_rewritten(project.pk, abandon_commits(line[12:]), ["main"])
    regression.refresh_from_db()
    assert (regression.recovered_by, regression.withdrawn_at) == (None, None)


def test_a_limit_that_an_abandoned_commit_kept_again_is_crossed(project: Project) -> None:
    line = factories.create_commits(project, 4)
    measure_and_judge(line, factories.create_case(project), [90, 71, 92, 70])
    keys = abandon_commits(line[2:3])
    history_rewritten(project.pk, keys, ["main"])
    found = Regression.objects.get(withdrawn_at=None)
    assert (found.last_good, found.first_bad, found.recovered_by) == (line[0], line[1], None)
    Commit.objects.filter(pk__in=keys).update(branch="main", left_branch="")
    history_rewritten(project.pk, keys, ["main"])
    found.refresh_from_db()
    assert found.recovered_by == line[2]


def test_a_commit_that_returns_is_judged_again(project: Project, line: list[Commit]) -> None:
    keys = abandon_commits(line[6:])
    history_rewritten(project.pk, keys, ["main"])
    Commit.objects.filter(pk__in=keys).update(branch="main", left_branch="")
    history_rewritten(project.pk, keys, ["main"])
    assert Regression.objects.get(withdrawn_at=None).first_bad == line[6]
    assert SeriesLatest.objects.get().position == 9


def test_twice_is_as_once(project: Project, line: list[Commit]) -> None:
    keys = abandon_commits(line[6:])
    history_rewritten(project.pk, keys, ["main"])
    before = list(Regression.objects.values())
    history_rewritten(project.pk, keys, ["main"])
    assert list(Regression.objects.values()) == before


def test_a_sweep_finds_what_was_missed(
    project: Project, line: list[Commit], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[Any, ...]] = []
    monkeypatch.setattr(dispatch, "send_task", lambda *call: sent.append(call))
    abandon_commits(line[6:])
    sweep_proofs()
    call = (dispatch.HISTORY_REWRITTEN, project.pk, [line[6].pk], ["main"])
    assert sent == [call]
    history_rewritten(project.pk, [line[6].pk], ["main"])
    sent.clear()
    sweep_proofs()
    assert call not in sent
