"""Which improvement repairs a regression: by the level, and by the phase that explains the step."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dashboard.models import Case, Commit, Project, Regression
from dashboard.regressions import judge_run
from tests.dashboard import factories


@pytest.fixture
def of(project: Project) -> Case:
    return factories.case(project)


def judged(project: Project, of: Case, **phases: Sequence[float]) -> list[Commit]:
    """Runs of commits in order, whose step time is the sum of its phases'; six measured on each level."""
    line = factories.commits(project, 6 * len(next(iter(phases.values()))))
    for commit in line:
        now = {name: levels[commit.position // 6] for name, levels in phases.items()}
        values = {"step_time": sum(now.values())}
        judge_run(factories.measured(commit, of, values, phases={"phase_self_time": now}).pk)
    return line


def repaired() -> dict[int, Commit | None]:
    rows = Regression.objects.filter(withdrawn_at=None).select_related("first_bad", "recovered_by")
    return {one.first_bad.position: one.recovered_by for one in rows}


def test_a_gain_in_another_phase_repairs_nothing(project: Project, of: Case) -> None:
    judged(project, of, push=[0.004, 0.008, 0.008], targets=[0.006, 0.006, 0.002])
    assert repaired() == {6: None}


def test_a_gain_in_the_same_phase_repairs(project: Project, of: Case) -> None:
    line = judged(project, of, push=[0.004, 0.008, 0.0042], targets=[0.006, 0.006, 0.0058])
    assert repaired() == {6: line[12]}


def test_what_lies_below_another_regression_can_be_repaired(project: Project, of: Case) -> None:
    line = judged(project, of, push=[0.004, 0.008, 0.008, 0.004], targets=[0.006, 0.006, 0.016, 0.016])
    assert repaired() == {6: line[18], 12: None}


def test_a_phase_that_is_back_repairs_where_something_else_became_slower(project: Project, of: Case) -> None:
    line = judged(project, of, push=[0.004, 0.008, 0.004], targets=[0.006, 0.006, 0.0073])
    assert repaired() == {6: line[12]}


def test_a_step_that_no_phase_explains_goes_by_the_level(project: Project, of: Case) -> None:
    line = judged(project, of, a=[0.004, 0.006, 0.004], b=[0.003, 0.005, 0.003], c=[0.003, 0.005, 0.003])
    assert repaired() == {6: line[12]}
