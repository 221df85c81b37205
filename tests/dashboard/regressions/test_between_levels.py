"""A step that pairs saw nowhere, and that stands, is looked for between its levels."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from dashboard.models import Channel, Commit, Delivery, Experiment, Project, Regression
from dashboard.regressions import judge_run
from tests.dashboard import factories
from tests.dashboard.regressions.planted import History, linear_history
from tests.dashboard.regressions.test_proved_again import LOST, end_proof, measure_step

# Many enough before it that pairs can look well inside the level.
LATE = 10
# The last commit of a history: many enough behind its steps that all of them are told.
LAST = 32


@pytest.fixture
def refuted_twice(project: Project) -> list[Commit]:
    """A step at LATE that pairs saw neither at its own commits nor with one more on both sides."""
    factories.create_case(project)
    line = factories.create_commits(project, 40)
    # Of the first points nothing is to be said: they are judged with those behind them.
    earlier = [
        (commit, {"step_time": 0.010 * factories.run_noise(commit.position)}) for commit in line[: LATE - 2]
    ]
    factories.store_measured_runs(earlier, project.cases.get())
    measure_step(line[LATE - 2 : LATE + 3], slow_from=LATE)
    for _ in range(2):
        end_proof("refuted", ratio=1.02, low=1.0, high=1.04)
    assert Regression.objects.get().state == "refuted"
    return line[LATE + 3 :]


def test_what_stands_is_looked_for_between_its_levels(refuted_twice: list[Commit]) -> None:
    measure_step(refuted_twice[:7], slow_from=LATE)
    assert not Experiment.objects.filter(state="requested").exists()
    measure_step(refuted_twice[7:8], slow_from=LATE)
    proof = Experiment.objects.get(state="requested")
    assert proof.base_commit.position <= LATE - 6
    assert proof.head_commit.position >= LATE + 6


def test_what_its_levels_show_is_confirmed_between_them(refuted_twice: list[Commit]) -> None:
    """Without a repository there is no commit to bisect."""
    Channel.objects.create(project=refuted_twice[0].project, kind="email", address="a@example.org")
    measure_step(refuted_twice[:8], slow_from=LATE)
    proof = Experiment.objects.get(state="requested")
    end_proof("confirmed", ratio=1.38, low=1.36, high=1.4)
    regression = Regression.objects.get()
    assert regression.state == "confirmed"
    assert (regression.last_good, regression.first_bad) == (proof.base_commit, proof.head_commit)
    assert regression.culprit is None
    assert Delivery.objects.get().regression == regression
    measure_step(refuted_twice[8:], slow_from=LATE)
    assert Experiment.objects.count() == 3


def test_a_proof_between_levels_that_was_lost_is_measured_again(refuted_twice: list[Commit]) -> None:
    measure_step(refuted_twice[:8], slow_from=LATE)
    lost = Experiment.objects.get(state="requested")
    end_proof(**LOST)
    assert Regression.objects.get().state == "refuted"
    measure_step(refuted_twice[8:17], slow_from=LATE)
    again = Experiment.objects.get(state="requested")
    assert (again.base_commit, again.head_commit) == (lost.base_commit, lost.head_commit)


def test_a_proof_between_levels_that_stays_undecided_changes_nothing(refuted_twice: list[Commit]) -> None:
    measure_step(refuted_twice[:8], slow_from=LATE)
    end_proof("undecided", reason={"code": "pairs"})
    measure_step(refuted_twice[8:], slow_from=LATE)
    assert Regression.objects.get().state == "refuted"
    assert Experiment.objects.count() == 3


def test_what_is_refuted_between_its_levels_too_stays_refuted(refuted_twice: list[Commit]) -> None:
    measure_step(refuted_twice[:8], slow_from=LATE)
    end_proof("refuted", ratio=1.01, low=0.99, high=1.03)
    measure_step(refuted_twice[8:], slow_from=LATE)
    assert Regression.objects.get().state == "refuted"
    assert Experiment.objects.count() == 3


def measure_history(
    steps: Mapping[str, float], seen: int, memory: Mapping[str, float] | None = None
) -> list[Regression]:
    """What is told once a history was measured whose points show all its steps as one, at commit `seen`.

    `memory`: its steps, where they aren't those of the time.
    """
    history = History(linear_history(LAST), steps, others={"peak_memory": memory or steps}).make()
    case = factories.create_case(history.project)
    for commit in history.rows.values():
        place = f"m{LAST}" if commit.position >= seen else "m0"
        values = {name: history.level(place, name) for name in ("step_time", "peak_memory")}
        values = {name: value * factories.run_noise(commit.position) for name, value in values.items()}
        values["peak_memory"] *= 1e11
        run = factories.store_measured_run(commit, case, values)
        # Of the points before it nothing is to be said: they are judged with those behind them.
        if commit.position < seen - 2:
            continue
        judge_run(run.pk)
        if history.project.experiments.filter(state="requested").exists():
            history.answer_all()
    return list(Regression.objects.filter(withdrawn_at=None).order_by("first_bad__position"))


def test_two_series_that_seemed_to_step_beside_their_commit_are_one_regression(db: None) -> None:
    """Pairs of each find it between its levels, and bisection leads both to the commit."""
    (regression,) = measure_history({"m9": 1.4}, seen=14)
    assert (regression.state, regression.first_bad.subject) == ("confirmed", "m9")
    assert {change.series.metric.name for change in regression.changes.all()} == {"step_time", "peak_memory"}


def test_two_halves_of_a_step_are_both_named(db: None) -> None:
    told = measure_history({"m10": 1.12, "m16": 1.1}, seen=13)
    assert [(found.state, found.commits_left, found.first_bad.subject) for found in told] == [
        ("confirmed", 1, "m10"),
        ("confirmed", 1, "m16"),
    ]


def test_the_half_that_another_series_has_behind_a_commit_is_named(db: None) -> None:
    told = measure_history({"m10": 1.25}, seen=13, memory={"m10": 1.12, "m16": 1.1})
    assert [(found.series.metric.name, found.first_bad.subject) for found in told] == [
        ("step_time", "m10"),
        ("peak_memory", "m16"),
    ]


def test_what_came_little_by_little_is_told_over_its_commits(db: None) -> None:
    (regression,) = measure_history({f"m{place}": 1.02 for place in range(8, 20)}, seen=14)
    assert (regression.state, regression.came_gradually) == ("confirmed", True)
    assert regression.last_good.position < 8
    assert regression.first_bad.position >= 19
