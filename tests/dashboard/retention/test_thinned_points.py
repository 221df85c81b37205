"""Points thin out, and nothing that was judged moves: neither before nor after new runs arrive."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard import regressions, retention
from dashboard.models import Commit, Point, Project, Run
from tests.dashboard import factories
from tests.dashboard.retention.histories import KEEP_A_DAY, judged_by, measure_values, points_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def any_age(settings: Any) -> None:
    settings.PACELINE_KEEP_LEAST_DAYS = 0


@pytest.fixture
def thinned(project: Project) -> Project:
    Project.objects.filter(pk=project.pk).update(policy=KEEP_A_DAY)
    project.refresh_from_db()
    return project


@pytest.mark.parametrize("step", [1.4, 1.0])
def test_no_level_and_no_verdict_moves(thinned: Project, step: float) -> None:
    """Of two projects of one history one thins out; then both get the same runs, and both are judged anew."""
    whole = factories.create_project("whole")
    values = factories.noisy_levels((24, 0.010), (16, 0.010 * step), (30, 0.010 * step**2))
    for each in (thinned, whole):
        measure_values(each, values)
        regressions.redetect_project(each)
    before = judged_by(thinned)
    assert before == judged_by(whole)
    assert bool(before["changes"]) is (step > 1)

    dropped = retention.prune_runs(seconds=60)
    assert dropped["points"] > 10
    assert dropped["documents"] > len(values) / 2
    assert judged_by(thinned) == before
    for each in (thinned, whole):
        regressions.redetect_project(each)
    assert judged_by(thinned) == before == judged_by(whole)

    levels = ((len(values), 0.010), (2, 0.010 * step**2), (6, 0.013 * step**2))
    more = factories.noisy_levels(*levels)[len(values) :]
    for each in (thinned, whole):
        for run in measure_values(each, more, first=len(values)):
            regressions.judge_run(run.pk)
    assert judged_by(thinned) == judged_by(whole) != before


def test_only_what_nothing_reads_goes(thinned: Project) -> None:
    measure_values(thinned, factories.noisy_levels((60, 0.010)))
    positions = list(range(60))
    retention.prune_runs(seconds=60)
    for metric, phase in (("step_time", ""), ("peak_memory", ""), ("phase_self_time", "act")):
        assert points_of(thinned, metric, phase) == positions
    # The first of every four, and as many of the newest as overviews show.
    kept = [position for position in positions if position % 4 == 0 or position >= 30]
    assert points_of(thinned, "cpu_utilization") == points_of(thinned, "phase_time", "act") == kept


def test_a_bucket_that_is_thinned_stays_as_it_is(thinned: Project) -> None:
    measure_values(thinned, factories.noisy_levels((60, 0.010)))
    assert retention.prune_runs(seconds=60)["points"] == 22
    kept = points_of(thinned, "cpu_utilization")
    assert retention.prune_runs(seconds=60)["points"] == 0
    assert points_of(thinned, "cpu_utilization") == kept


def test_a_run_that_comes_late_thins_no_bucket_further(thinned: Project) -> None:
    runs = measure_values(thinned, factories.noisy_levels((60, 0.010)))
    Point.objects.filter(run=runs[8], series__metric__name="cpu_utilization").delete()
    retention.prune_runs(seconds=60)
    assert {9, 12}.issubset(points_of(thinned, "cpu_utilization"))
    assert not {10, 11}.intersection(points_of(thinned, "cpu_utilization"))


def test_a_disturbed_run_stands_for_no_bucket(thinned: Project) -> None:
    runs = measure_values(thinned, factories.noisy_levels((60, 0.010)))
    Run.objects.filter(pk=runs[4].pk).update(tainted=True)
    Point.objects.filter(run=runs[4]).update(tainted=True)
    retention.prune_runs(seconds=60)
    assert [place for place in points_of(thinned, "cpu_utilization") if 4 <= place < 8] == [4, 5]


def test_branches_are_thinned_apart(thinned: Project) -> None:
    runs = measure_values(thinned, factories.noisy_levels((60, 0.010)))
    Commit.objects.filter(pk__in=[runs[place].commit_id for place in (9, 10)]).update(branch="topic", fork=3)
    retention.prune_runs(seconds=60)
    assert [place for place in points_of(thinned, "cpu_utilization") if 8 <= place < 12] == [8, 9]


def test_what_was_a_headline_once_keeps_its_points(thinned: Project) -> None:
    runs = measure_values(thinned, factories.noisy_levels((60, 0.010)))
    factories.create_regression([run.commit for run in runs], 20, "cpu_utilization", 20)
    retention.prune_runs(seconds=60)
    assert len(points_of(thinned, "cpu_utilization")) == 60
    assert len(points_of(thinned, "phase_time", "act")) < 60


def test_points_stay_for_ever_unless_somebody_asks(project: Project) -> None:
    measure_values(project, factories.noisy_levels((60, 0.010)))
    assert "points" not in retention.prune_runs(seconds=60)
    assert len(points_of(project, "cpu_utilization")) == 60
