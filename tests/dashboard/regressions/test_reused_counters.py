"""Counters that were taken over open no regression; those that were counted do."""

from __future__ import annotations

import pytest

from dashboard.models import Project, Regression
from dashboard.regressions import judge_run
from tests.dashboard import factories

CALLS = (100.0, 100.0, 160.0, 160.0)


@pytest.mark.parametrize(("counted_at", "opened"), [("", 1), ("a" * 40, 0)])
def test_only_what_was_counted_opens_a_regression(project: Project, counted_at: str, opened: int) -> None:
    case = factories.create_case(project)
    for commit, calls in zip(factories.create_commits(project, 4), CALLS, strict=True):
        run = factories.store_measured_run(
            commit, case, {"function_calls": calls}, counted_at=counted_at if commit.position >= 2 else ""
        )
        judge_run(run.pk)
    assert Regression.objects.count() == opened


def test_the_clock_is_believed_all_the_same(project: Project) -> None:
    case = factories.create_case(project)
    slow = factories.noisy_levels((6, 0.010), (4, 0.014))
    for commit, value in zip(factories.create_commits(project, 10), slow, strict=True):
        judge_run(factories.store_measured_run(commit, case, {"step_time": value}, counted_at="a" * 40).pk)
    assert Regression.objects.get().first_bad.position == 6
