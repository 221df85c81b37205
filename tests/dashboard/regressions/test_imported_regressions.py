"""What another tool's results show, and what becomes of it once a host of this site sees the same."""

from __future__ import annotations

import pytest

from dashboard.models import Channel, Commit, Experiment, Project, Regression
from dashboard.regressions import experiment_ended, judge_run, redetect_project
from tests.dashboard import factories

STEP = 20


@pytest.fixture
def line(project: Project) -> list[Commit]:
    """Commits with imported results, which show a step that was found when they were imported."""
    commits = factories.create_commits(project, 30)
    imported = factories.create_case(project, "pytest-benchmark")
    measured = [
        (commit, {"step_time": seconds}) for commit, seconds in zip(commits, slower_times(1.0), strict=True)
    ]
    factories.store_measured_runs(measured, imported, origin="imported", machine=None)
    redetect_project(project)
    return commits


def slower_times(level: float) -> list[float]:
    return factories.noisy_levels((STEP, level), (10, level * 1.4))


def measure_and_judge(line: list[Commit], levels: dict[str, list[float]]) -> None:
    """As they come; of the first points nothing is to be said: they are judged with the next."""
    case = factories.create_case(line[0].project)
    measured = [
        (commit, {name: of_metric[place] for name, of_metric in levels.items()})
        for place, commit in enumerate(line)
    ]
    factories.store_measured_runs(measured[: STEP - 3], case)
    for commit, values in measured[STEP - 3 :]:
        judge_run(factories.store_measured_run(commit, case, values).pk)


def test_imported_results_alone_are_proved_by_nobody(line: list[Commit]) -> None:
    regression = Regression.objects.get()
    assert (regression.first_bad, regression.state, regression.proving) == (line[STEP], "suspected", False)
    assert not Experiment.objects.exists()


def test_a_step_that_is_measured_too_is_proved_by_what_measured_it(line: list[Commit]) -> None:
    imported = Regression.objects.get()
    measure_and_judge(line, {"step_time": slower_times(0.010)})
    regression = Regression.objects.get()
    assert (regression.pk, regression.changes.count(), regression.proving) == (imported.pk, 2, True)
    asked = Experiment.objects.get()
    assert asked.head_configuration == regression.series.configuration != imported.series.configuration


def test_a_counter_that_moves_there_is_told(line: list[Commit], project: Project) -> None:
    Channel.objects.create(project=project, kind="email", address="a@example.org")
    measure_and_judge(line, {"function_calls": [600.0] * STEP + [900.0] * 10})
    regression = Regression.objects.get()
    assert (regression.state, regression.series.metric.name) == ("confirmed", "function_calls")
    assert regression.deliveries.count() == 1


def test_its_place_is_that_of_what_is_measured(line: list[Commit]) -> None:
    """Of every third commit: what was imported of each knows a narrower place, and can't be proved there."""
    case = factories.create_case(line[0].project)
    for place, seconds in enumerate(slower_times(0.010)):
        if place % 3 == 0:
            judge_run(factories.store_measured_run(line[place], case, {"step_time": seconds}).pk)
    places = []
    while asked := Experiment.objects.filter(state="requested").first():
        places.append((asked.base_commit.position, asked.head_commit.position))
        assert len(places) < 5, "it doesn't end"
        experiment_ended(factories.end_experiment(asked, "refuted", ratio=1.0, low=0.99, high=1.01).pk)
    # Where it is seen, and then as far as noise may have placed it.
    assert places == [(18, 21), (15, 24)]
    assert Regression.objects.get().state == "refuted"
