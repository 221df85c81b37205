"""How much a judgement asks the database: as often with many live regressions as with few."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dashboard.models import Change, Commit, Project, Regression, SeriesLatest
from dashboard.regressions import judge_run
from tests.dashboard import factories

MOST = 150
LEVEL, BEHIND = 26, 4
# Of a level's last points, which are looked at.
FEW = 3
STEP = factories.noisy_levels((LEVEL, 0.010), (BEHIND, 0.014))
CASES = 5
# Of a run of which nothing is news, however many series it has.
QUIET = 9


def create_line(project: Project) -> list[Commit]:
    first = factories.create_commit(project, 0)
    others = Commit.objects.bulk_create(
        Commit(
            project=project,
            hash=f"{position:040x}",
            parents=[],
            branch="main",
            position=position,
            committed_at=first.committed_at,
        )
        for position in range(1, MOST + BEHIND + 1)
    )
    return [first, *others]


def create_live_regressions(line: list[Commit], count: int, spread: int) -> None:
    """As many at as many commits, with a change each, on the series of other cases.

    Noise may have moved each of them by `spread` commits: where it is more than 0 their places overlap.
    """
    project = line[0].project
    others = [
        factories.create_run(line[0], factories.create_case(project, f"case_{number}"))
        for number in range(CASES)
    ]
    series = [factories.get_series(run, name) for run in others for name in ("step_time", "peak_memory")]
    size = {"before": 1.0, "after": 1.3, "ratio": 1.3, "low": 1.28, "high": 1.32}
    places = range(MOST - count + 1, MOST + 1)
    rows = Regression.objects.bulk_create(
        Regression(
            project=project,
            first_bad=line[at],
            last_good=line[at - 1],
            series=series[at % len(series)],
            state="confirmed",
            **size,
        )
        for at in places
    )
    Change.objects.bulk_create(
        Change(
            series=row.series,
            regression=row,
            first_bad=row.first_bad,
            last_good=row.last_good,
            position=at,
            reach_good=max(0, at - 1 - spread),
            reach_bad=at + spread,
            direction="regression",
            confidence=0.99,
            **size,
        )
        for at, row in zip(places, rows, strict=True)
    )


def count_queries(count: int, spread: int) -> list[int]:
    """Of the judgement of each run of a case that becomes slower behind so many live regressions."""
    project = factories.create_project(f"{count}-live")
    line = create_line(project)
    create_live_regressions(line, count, spread)
    case = factories.create_case(project, "train")
    counts = []
    for commit, value in zip(line[MOST - LEVEL + 1 :], STEP, strict=True):
        run = factories.store_measured_run(commit, case, {"step_time": value, "throughput": 1 / value})
        # Of the first points nothing is to be said: they are judged with those behind them.
        if commit.position < MOST - FEW:
            continue
        with CaptureQueriesContext(connection) as captured:
            judge_run(run.pk)
        counts.append(len(captured))
    opened = project.regressions.exclude(state="confirmed")
    assert list(opened.values_list("state", "first_bad__position")) == [("suspected", MOST + 1)]
    return counts


@pytest.mark.django_db
@pytest.mark.parametrize("spread", [0, 2])
def test_a_judgement_asks_as_often_with_many_regressions_as_with_few(spread: int) -> None:
    assert count_queries(5, spread) == count_queries(MOST, spread)


@pytest.mark.django_db
@pytest.mark.parametrize("values", [{}, {"function_calls": 600.0}, {"peak_memory": 2e9}])
def test_a_run_that_changes_nothing_asks_little(values: dict[str, float]) -> None:
    project = factories.create_project()
    line = factories.create_commits(project, LEVEL)
    case = factories.create_case(project)
    measured = [
        (commit, {"step_time": value, **values})
        for commit, value in zip(line, factories.noisy_levels((LEVEL, 0.010)), strict=True)
    ]
    for run in factories.store_measured_runs(measured, case)[-FEW:]:
        with CaptureQueriesContext(connection) as captured:
            judge_run(run.pk)
    asked = [query for query in captured if "SAVEPOINT" not in str(query["sql"])]
    assert len(asked) == QUIET


@pytest.mark.django_db
def test_a_run_beside_changes_that_stay_asks_little_more() -> None:
    project = factories.create_project()
    line = factories.create_commits(project, 2 * LEVEL)
    case = factories.create_case(project)
    calls = [600.0] * LEVEL + [500.0] * LEVEL
    measured = [(commit, {"function_calls": value}) for commit, value in zip(line, calls, strict=True)]
    for run in factories.store_measured_runs(measured, case)[-FEW:]:
        with CaptureQueriesContext(connection) as captured:
            judge_run(run.pk)
    assert project.regressions.count() == 0
    assert Change.objects.count() == 1
    asked = [query for query in captured if "SAVEPOINT" not in str(query["sql"])]
    # No phases of a step's time; but the change, what was counted at it, and both environments (two queries).
    assert len(asked) == QUIET - 1 + 4


def count_queries_of_calls(slug: str, by: float) -> list[int]:
    """Of the judgement of each run of a case that makes `by` times as many calls at each commit."""
    project = factories.create_project(slug)
    case = factories.create_case(project)
    counts = []
    for commit in factories.create_commits(project, 12):
        calls = {"function_calls": round(100_000 * by**commit.position)}
        run = factories.store_measured_run(commit, case, calls)
        with CaptureQueriesContext(connection) as captured:
            judge_run(run.pk)
        counts.append(len([query for query in captured if "SAVEPOINT" not in str(query["sql"])]))
    return counts


@pytest.mark.django_db
def test_steps_that_add_up_ask_as_often_as_those_that_do_not() -> None:
    little, growing = count_queries_of_calls("little", 1.003), count_queries_of_calls("growing", 1.02)
    # Commits 3, 6 and 9 are told; then the regression's experiments are read, by three queries more.
    assert growing[:3] == little[:3]
    quiet = [count for position, count in enumerate(growing) if position > 3 and position % 3]
    assert quiet == [little[-1] + 3] * len(quiet)


@pytest.mark.django_db
def test_behind_a_pooler_a_run_is_judged_alike(settings: Any) -> None:
    levels = []
    for is_prepared in (True, False):
        settings.PACELINE_PREPARED_STATEMENTS = is_prepared
        project = factories.create_project(f"prepared-{is_prepared}".lower())
        case = factories.create_case(project)
        for commit, value in zip(factories.create_commits(project, LEVEL), STEP, strict=False):
            run = factories.store_measured_run(commit, case, {"step_time": value, "peak_memory": 2e9})
            judge_run(run.pk)
        run.refresh_from_db()
        assert run.judged_at is not None
        latest = SeriesLatest.objects.filter(series__configuration=run.configuration_id).order_by("series")
        levels.append(list(latest.values_list("level", flat=True)))
    assert levels[0] == levels[1] == [pytest.approx(0.010, rel=0.01), 2e9]


@pytest.mark.django_db
def test_a_level_that_stays_is_not_written() -> None:
    project = factories.create_project()
    case = factories.create_case(project)
    written = []
    for commit in factories.create_commits(project, 3):
        run = factories.store_measured_run(commit, case, {"function_calls": 600.0})
        before = place_of_latest(run.pk)
        judge_run(run.pk)
        written.append(place_of_latest(run.pk) != before)
    assert written == [True, False, False]


def place_of_latest(run: int) -> str:
    """Where PostgreSQL keeps the row, which is another place each time it is written."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT ctid::text FROM dashboard_serieslatest WHERE run_id = %s", [run])
        (place,) = cursor.fetchone()
    return str(place)
