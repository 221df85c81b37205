"""Points thin out, and nothing that was judged moves: neither before nor after new runs arrive."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard import regressions, retention
from dashboard.models import Project
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


def test_points_stay_for_ever_unless_somebody_asks(project: Project) -> None:
    measure_values(project, factories.noisy_levels((60, 0.010)))
    assert "points" not in retention.prune_runs(seconds=60)
    assert len(points_of(project, "cpu_utilization")) == 60
