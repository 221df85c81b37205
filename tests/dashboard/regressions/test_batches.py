"""The series of a run are judged together: as each by itself, by few queries; what stays isn't written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

from dashboard.environments import RunEnvironments
from dashboard.models import Case, Commit, GuardResult, Project, Run, Series, SeriesLatest
from dashboard.regressions import judge_run
from dashboard.regressions.changes import FoundChange, find_changes
from dashboard.regressions.series.branch_line import BranchLine
from dashboard.regressions.series.history import load_histories, load_recent
from tests.dashboard import factories

COMMITS, SLOW, TAKEN_OVER = 24, 12, 18
MAIN = BranchLine("main")
QUALITY = "quality.score"


def measure_commit(commit: Commit, case: Case) -> Run:
    """One of a case that becomes slower in one phase, then counts more calls, and forgets what it learned."""
    noise, slow = factories.run_noise(commit.position), commit.position >= SLOW
    time = noise * (0.014 if slow else 0.010)
    values = {
        "step_time": time,
        "throughput": 1 / time,
        "peak_memory": 1e9 * noise * (1.2 if slow else 1.0),
        "function_calls": 160.0 if commit.position >= TAKEN_OVER else 100.0,
        "synchronisations": 4.0 if slow else 3.0,
        QUALITY: 5.0 * noise if not slow else 1.0,
    }
    phases = {"act": noise * 0.004, "learn": noise * 0.006 + 0.004 * slow}
    if commit.position % 5 == 0:
        del phases["act"]
    run = factories.store_measured_run(
        commit,
        case,
        values,
        phases={"phase_self_time": phases},
        tainted=commit.position % 7 == 3,
        environment={"driver": "2" if slow else "1"},
        counted_at="a" * 40 if commit.position >= TAKEN_OVER else "",
    )
    series = factories.get_series(run, QUALITY)
    Series.objects.filter(pk=series.pk).update(guarded=True)
    GuardResult.objects.create(
        series=series,
        run=run,
        position=commit.position,
        minimum=3.0,
        seeds=2,
        state="violated" if slow else "kept",
    )
    return run


def measure_history(project: Project, case: Case) -> list[Run]:
    line = factories.create_commits(project, COMMITS)
    runs = [measure_commit(commit, case) for commit in line]
    # The newest two are measured again, one of them disturbed.
    return [*runs, *(measure_commit(commit, case) for commit in line[-2:])]


def judged_series() -> list[Series]:
    return list(Series.objects.filter(phase="").select_related("metric").order_by("pk"))


def test_series_are_judged_together_as_each_by_itself(project: Project, case: Case) -> None:
    for run in measure_history(project, case)[: SLOW + 4]:
        judge_run(run.pk)
    series = judged_series()
    histories = load_recent(series, MAIN, COMMITS - 1)
    alone = [load_recent([row], MAIN, COMMITS - 1)[0] for row in series]
    assert histories == alone
    together = find_changes(histories, RunEnvironments())
    by_itself: dict[int, list[FoundChange]] = {}
    for history in alone:
        by_itself |= find_changes([history], RunEnvironments())
    assert together == by_itself
    names = {row.metric.name for row in series if together[row.pk]}
    # The calls were taken over from another commit.
    assert names == {row.metric.name for row in series} - {"function_calls"}


def test_many_series_are_read_by_as_many_queries_as_one(project: Project, case: Case) -> None:
    measure_history(project, case)
    counts = []
    series = judged_series()
    for read in (series[:1], series):
        with CaptureQueriesContext(connection) as captured:
            load_histories([row for row in read if not row.guarded], MAIN)
        counts.append(len(captured))
    assert counts == [1, 1]


def test_a_run_that_is_judged_again_writes_nothing_of_its_series(project: Project, case: Case) -> None:
    runs = measure_history(project, case)
    for run in runs:
        judge_run(run.pk)
    assert SeriesLatest.objects.filter(series__phase="", level=None).count() == 0
    Run.objects.filter(pk=runs[-1].pk).update(judged_at=None)
    told: list[str] = []

    def note_statement(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        told.append(sql)
        return execute(sql, *rest)

    # Not as Django logs them: of what PostgreSQL has prepared it knows no text afterwards.
    with connection.execute_wrapper(note_statement):
        judge_run(runs[-1].pk)
    written = [sql for sql in told if sql.lstrip().startswith(("INSERT", "UPDATE", "DELETE"))]
    assert [sql.split('"')[1] for sql in written] == ["dashboard_run"]
