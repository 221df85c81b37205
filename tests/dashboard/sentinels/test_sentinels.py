"""A pinned commit measured again and again: chosen, requested, kept apart, compared."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from dashboard import runs, sentinels
from dashboard.models import Case, Commit, Machine, Point, Project, Run, Sentinel, SentinelPoint, Series
from dashboard.regressions import judge_run
from dashboard.sentinels.pinning import GIVEN_UP
from tests.dashboard import factories

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


@pytest.fixture
def case(project: Project) -> Case:
    return factories.create_case(project)


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def line(project: Project, case: Case, now: datetime) -> list[Commit]:
    """Three commits, each measured a day after the other on a machine that lives; the newest an hour ago."""
    made = factories.create_commits(project, 3)
    for age, commit in zip((2, 1, 0), made, strict=True):
        factories.store_measured_run(
            commit, case, {"step_time": 0.010, "function_calls": 5}, finished_at=now - HOUR - age * DAY
        )
    Machine.objects.update(seen_at=now)
    return made


def store_sentinel_run(sentinel: Sentinel, at: datetime, value: float) -> Run:
    """One more measurement of a sentinel, stored and not yet judged."""
    run = factories.create_run(
        sentinel.commit, sentinel.case, origin="sentinel", only_on=sentinel.machine, finished_at=at
    )
    metric = Series.objects.get(metric__name="step_time").metric
    samples = [value * factor for factor in (0.998, 0.999, 1.0, 1.001, 1.002)]
    SentinelPoint.objects.create(
        sentinel=sentinel, run=run, metric=metric, value=value, samples=samples, measured_at=at
    )
    return run


def test_the_commit_that_was_measured_first_is_pinned(line: list[Commit], now: datetime) -> None:
    sentinels.watch_machines(now)
    made = Sentinel.objects.get()
    assert (made.commit, made.machine.name, made.by_hand) == (line[0], "bench-1", False)
    # Its run is the first point; counters repeat anyway.
    assert [point.metric.name for point in made.points.all()] == ["step_time"]


def test_it_is_measured_daily_and_waits_once(line: list[Commit], now: datetime) -> None:
    asked = sentinels.watch_machines(now)
    again = sentinels.watch_machines(now)
    assert [run.commit for run in asked] == [line[0]]
    assert (asked[0].origin, asked[0].only_on, asked[0].priority) == ("sentinel", Machine.objects.get(), -20)
    assert again == []


def test_what_was_measured_today_is_not_due(line: list[Commit], now: datetime) -> None:
    sentinels.watch_machines(now)
    Run.objects.filter(origin="sentinel").delete()
    store_sentinel_run(Sentinel.objects.get(), now - HOUR, 0.010)
    assert sentinels.watch_machines(now) == []


@pytest.mark.parametrize("absent", ["machine", "case", "project"])
def test_what_nobody_measures_any_more_has_no_sentinel(
    line: list[Commit], now: datetime, absent: str
) -> None:
    if absent == "machine":
        Machine.objects.update(seen_at=now - DAY)
    elif absent == "case":
        Run.objects.update(finished_at=now - 5 * DAY)
    else:
        Project.objects.update(sentinels=False)
    assert sentinels.watch_machines(now) == []
    assert not Sentinel.objects.exists()


def test_one_that_waits_in_vain_is_given_up(line: list[Commit], now: datetime) -> None:
    (run,) = sentinels.watch_machines(now)
    Machine.objects.update(seen_at=now)
    sentinels.watch_machines(now + 2 * DAY)
    run.refresh_from_db()
    assert (run.state, run.reason) == ("cancelled", GIVEN_UP)


def test_only_its_machine_claims_it(line: list[Commit], now: datetime) -> None:
    sentinels.watch_machines(now)
    assert runs.claim_run("default", "bench-2") is None
    claimed = runs.claim_run("default", "bench-1")
    assert claimed is not None
    assert claimed.commit == line[0].hash


def test_a_request_for_the_same_commit_is_a_run_of_its_own(
    line: list[Commit], case: Case, now: datetime
) -> None:
    (waiting,) = sentinels.watch_machines(now)
    pattern = Run.objects.filter(origin="measured").latest("pk")
    assert runs.repeat_run(pattern, line[0]).pk != waiting.pk


def test_a_commit_is_pinned_by_hand(project: Project, line: list[Commit], now: datetime) -> None:
    sentinels.watch_machines(now)
    (made,) = sentinels.pin_commit(project, line[1], now)
    made.refresh_from_db()
    assert (made.commit, made.by_hand, made.points.count()) == (line[1], True, 1)


def test_beside_a_confirmation_what_is_stale_is_measured_again(line: list[Commit], now: datetime) -> None:
    sentinels.watch_machines(now)
    Run.objects.filter(origin="sentinel").delete()
    series, machine = Series.objects.get(metric__name="step_time"), Machine.objects.get()
    run = sentinels.measure_beside(series.configuration, machine, now)
    assert run is not None
    assert (run.commit, run.priority) == (line[0], 5)


def test_beside_a_confirmation_what_is_fresh_is_not(line: list[Commit], now: datetime) -> None:
    sentinels.watch_machines(now)
    Run.objects.filter(origin="sentinel").delete()
    store_sentinel_run(Sentinel.objects.get(), now - HOUR, 0.010)
    series = Series.objects.get(metric__name="step_time")
    assert sentinels.measure_beside(series.configuration, Machine.objects.get(), now) is None


def test_a_step_that_two_measurements_show_is_kept(line: list[Commit], now: datetime) -> None:
    sentinels.watch_machines(now)
    sentinel = Sentinel.objects.get()
    start = now + DAY
    values = [0.010, 0.01002, 0.00999, 0.0100, 0.0125, 0.01252]
    for day, value in enumerate(values):
        judge_run(store_sentinel_run(sentinel, start + day * DAY, value).pk)
    sentinel.refresh_from_db()
    assert sentinel.ratio == pytest.approx(1.25, rel=0.01)
    assert (sentinel.moved_after, sentinel.moved_before) == (start + 3 * DAY, start + 4 * DAY)


def test_its_runs_open_nothing_and_move_no_series(line: list[Commit], now: datetime) -> None:
    sentinels.watch_machines(now)
    before = Point.objects.count()
    run = store_sentinel_run(Sentinel.objects.get(), now, 0.020)
    judge_run(run.pk)
    run.refresh_from_db()
    assert run.judged_at is not None
    assert Point.objects.count() == before


@pytest.mark.parametrize(("after", "moved"), [(0.0125, True), (0.01003, False)])
def test_the_machine_between_two_times(line: list[Commit], now: datetime, after: float, moved: bool) -> None:
    sentinels.watch_machines(now)
    sentinel = Sentinel.objects.get()
    for hours, value in ((1, 0.010), (2, 0.01001), (10, after), (11, after * 1.001)):
        store_sentinel_run(sentinel, now + hours * HOUR, value)
    series = Series.objects.get(metric__name="step_time")
    found = sentinels.compare_between(series, sentinel.machine, now + 3 * HOUR, now + 9 * HOUR)
    assert found is not None
    assert found.moved == moved
    assert found.ratio == pytest.approx(after / 0.010, rel=0.01)


def test_without_a_measurement_on_both_sides_it_says_nothing(line: list[Commit], now: datetime) -> None:
    sentinels.watch_machines(now)
    series, machine = Series.objects.get(metric__name="step_time"), Machine.objects.get()
    assert sentinels.compare_between(series, machine, now, now + HOUR) is None
