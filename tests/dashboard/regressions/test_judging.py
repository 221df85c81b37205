from __future__ import annotations

import statistics
import threading
from datetime import timedelta

import pytest
from django.db import connection

from dashboard.models import Case, Change, Commit, Point, Project, Regression, Run, SeriesLatest
from dashboard.regressions import judge_run, redetect_project
from dashboard.regressions.series.history import NEWEST
from dashboard.sentences.series.doubts import describe_doubts
from tests.dashboard import factories
from tests.dashboard.regressions.judged_again import judge_again

SLOW = factories.noisy_levels((6, 0.010), (4, 0.014))


def measure_line(line: list[Commit], case: Case, name: str, values: list[float]) -> list[Run]:
    return factories.store_measured_runs(
        [(commit, {name: value}) for commit, value in zip(line, values, strict=True)], case
    )


def judge_runs(runs: list[Run]) -> None:
    for run in runs:
        judge_run(run.pk)


def change_places() -> list[tuple[str, int]]:
    return list(Change.objects.values_list("direction", "position"))


def test_a_slower_level_is_a_regression(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 10)
    judge_runs(measure_line(line, case, "step_time", SLOW))
    regression = Regression.objects.get()
    assert (regression.first_bad, regression.last_good) == (line[6], line[5])
    assert regression.state == "suspected"
    assert (regression.low or 9) < 1.4 < (regression.high or 0)


def test_a_step_that_only_a_phase_shows_is_suspected_of_the_whole(project: Project, case: Case) -> None:
    loud = (0.8, 1.2, 1.1, 0.9, 1.25, 0.75, 0.85, 1.15, 1.2, 0.8)
    for commit, factor in zip(factories.create_commits(project, 10), loud, strict=True):
        late = commit.position >= 6
        learn, env = (0.004, 0.0054)[late] * factories.run_noise(commit.position), 0.006 * factor
        phases = {"phase_self_time": {"learn": learn, "env": env}}
        judge_run(factories.store_measured_run(commit, case, {"step_time": learn + env}, phases=phases).pk)
    regression = Regression.objects.get()
    assert (regression.first_bad.position, regression.series.metric.name) == (6, "step_time")
    assert (regression.state, regression.phase, regression.proving) == ("suspected", "learn", True)
    assert regression.ratio == pytest.approx(1.14, abs=0.02)
    change = Change.objects.get()
    assert describe_doubts(change)[0].startswith("Seen in learn: ")
    row = regression.experiments.get()
    assert (row.metric.name, row.after / row.before) == ("step_time", pytest.approx(1.14, abs=0.02))


def test_what_slows_some_processes_is_proved_by_what_the_average_one_lost(
    project: Project, case: Case
) -> None:
    calm, three_of_five = (0.99, 1.0, 1.01, 1.0, 0.995), (0.99, 1.0, 1.39, 1.38, 1.4)
    for commit in factories.create_commits(project, 20):
        factors = three_of_five if commit.position >= 8 else calm
        samples = [0.01 * factor * factories.run_noise(commit.position) for factor in factors]
        run = factories.store_measured_run(commit, case, {"step_time": statistics.median(samples)})
        Point.objects.filter(run=run).update(samples=samples)
        judge_run(run.pk)
    regression = Regression.objects.get()
    assert (regression.first_bad.position, regression.state) == (8, "suspected")
    (doubt,) = [text for text in describe_doubts(Change.objects.get()) if "best repetition" in text]
    assert doubt.startswith("Only some processes show it")
    row = regression.experiments.get()
    assert (row.metric.name, row.after / row.before) == ("step_time", pytest.approx(1.39**0.6, abs=0.02))


def test_a_steady_series_raises_nothing(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 12)
    judge_runs(measure_line(line, case, "step_time", factories.noisy_levels((12, 0.010))))
    assert not Change.objects.exists()


def test_an_improvement_is_kept_and_alarms_nobody(project: Project, case: Case) -> None:
    judge_runs(
        measure_line(
            factories.create_commits(project, 10),
            case,
            "step_time",
            factories.noisy_levels((6, 0.014), (4, 0.010)),
        )
    )
    assert change_places() == [("improvement", 6)]
    assert not Regression.objects.exists()


def test_the_run_is_marked_as_judged_and_the_level_kept(project: Project, case: Case) -> None:
    runs = measure_line(factories.create_commits(project, 10), case, "step_time", SLOW)
    judge_runs(runs)
    assert not Run.objects.filter(judged_at=None).exists()
    assert SeriesLatest.objects.get().level == pytest.approx(0.014, rel=0.01)


def test_a_run_that_failed_is_left_alone(project: Project, case: Case) -> None:
    run = factories.create_run(factories.create_commit(project, 0), case, state=Run.State.FAILED)
    judge_run(run.pk)
    run.refresh_from_db()
    assert run.judged_at is None


def test_judging_twice_changes_nothing(project: Project, case: Case) -> None:
    runs = measure_line(factories.create_commits(project, 10), case, "step_time", SLOW)
    judge_runs(runs)
    before = (list(Change.objects.values()), list(Regression.objects.values()))
    judge_runs(runs)
    assert (list(Change.objects.values()), list(Regression.objects.values())) == before


def test_runs_that_come_in_any_order_end_alike(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 10)
    for place in (9, 0, 4, 8, 2, 6, 1, 7, 3, 5):
        judge_runs([factories.store_measured_run(line[place], case, {"step_time": SLOW[place]})])
    assert Regression.objects.get(withdrawn_at=None).first_bad == line[6]
    assert change_places() == [("regression", 6)]


def test_runs_of_one_commit_are_one_point(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 10)
    runs = measure_line(line, case, "step_time", SLOW)
    # Two more runs that were disturbed say less than the median of all three.
    runs += [factories.store_measured_run(line[2], case, {"step_time": value}) for value in (0.0101, 0.030)]
    judge_runs(runs)
    assert change_places() == [("regression", 6)]


def test_tainted_points_are_not_judged(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 12)
    values = factories.noisy_levels((6, 0.010), (3, 0.014), (3, 0.010))
    runs = [
        factories.store_measured_run(commit, case, {"step_time": value}, tainted=6 <= commit.position < 9)
        for commit, value in zip(line, values, strict=True)
    ]
    judge_runs(runs)
    assert not Change.objects.exists()


def test_each_branch_has_a_history_of_its_own(project: Project, case: Case) -> None:
    judge_runs(
        measure_line(
            factories.create_commits(project, 6), case, "step_time", factories.noisy_levels((6, 0.010))
        )
    )
    judge_runs(
        measure_line(
            factories.create_commits(project, 6, "slow"),
            case,
            "step_time",
            factories.noisy_levels((6, 0.014)),
        )
    )
    assert not Change.objects.exists()


def test_a_change_that_is_placed_better_moves(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 12)
    known = [*range(6), 9, 10, 11]
    values = factories.noisy_levels((7, 0.010), (5, 0.014))
    judge_runs(
        [factories.store_measured_run(line[place], case, {"step_time": values[place]}) for place in known]
    )
    first = Change.objects.get()
    assert first.position == 9
    judge_runs(
        [factories.store_measured_run(line[place], case, {"step_time": values[place]}) for place in (7, 8, 6)]
    )
    moved = Change.objects.get()
    assert (moved.pk, moved.position, moved.last_good) == (first.pk, 7, line[6])
    assert Regression.objects.get().first_bad == line[7]


def test_a_change_that_is_no_longer_found_is_withdrawn(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 10)
    runs = measure_line(line, case, "step_time", SLOW)
    judge_runs(runs)
    # Measured again, all commits are alike: the first runs of the new level were disturbed.
    judge_runs(
        [
            factories.store_measured_run(commit, case, {"step_time": 0.010})
            for commit in line[6:]
            for _ in range(2)
        ]
    )
    assert not Change.objects.exists()
    assert Regression.objects.get().withdrawn_at is not None


def test_a_step_that_comes_back_takes_up_its_regression(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 10)
    judge_runs(measure_line(line, case, "step_time", SLOW))
    calm = [
        factories.store_measured_run(commit, case, {"step_time": 0.010})
        for commit in line[6:]
        for _ in range(2)
    ]
    judge_runs(calm)
    Run.objects.filter(pk__in=[run.pk for run in calm]).delete()
    judge_again(Run.objects.order_by("pk").values_list("pk", flat=True)[9])
    assert Regression.objects.get().withdrawn_at is None


def test_a_repaired_regression_names_the_commit(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 15)
    judge_runs(
        measure_line(line, case, "step_time", factories.noisy_levels((5, 0.010), (5, 0.014), (5, 0.0101)))
    )
    assert Regression.objects.get().recovered_by == line[10]


def test_a_repair_of_a_part_repairs_nothing(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 15)
    judge_runs(
        measure_line(line, case, "step_time", factories.noisy_levels((5, 0.010), (5, 0.020), (5, 0.015)))
    )
    assert Regression.objects.get().recovered_by is None


def store_more_runs(pattern: Run, count: int) -> None:
    """As many runs like this one at the commits behind it, with its series and environment."""
    at, series = pattern.commit.position, pattern.points.get().series
    ours = range(at + 1, at + 1 + count)
    commits = Commit.objects.bulk_create(
        Commit(
            project=pattern.commit.project,
            hash=f"{position:040x}",
            parents=[],
            branch="main",
            position=position,
            committed_at=factories.START + timedelta(hours=position),
        )
        for position in ours
    )
    alike = {name: getattr(pattern, name) for name in ("configuration", "environment", "machine", "state")}
    runs = Run.objects.bulk_create(
        Run(commit=commit, repetitions=3, time_limit=600, **alike) for commit in commits
    )
    values = [0.014 * factories.run_noise(position) for position in ours]
    Point.objects.bulk_create(
        Point(
            series=series,
            position=position,
            run=run,
            value=value,
            samples=[value * factor for factor in factories.SPREAD],
        )
        for position, run, value in zip(ours, runs, values, strict=True)
    )


def test_a_step_of_a_driver_stays_one_when_it_is_old(project: Project, case: Case) -> None:
    values = factories.noisy_levels((10, 0.010), (10, 0.014))
    for commit, value in zip(factories.create_commits(project, 20), values, strict=True):
        kernel = {"kernel": "6.1" if commit.position < 10 else "6.2"}
        run = factories.store_measured_run(commit, case, {"step_time": value}, environment=kernel)
    judge_run(run.pk)
    store_more_runs(run, NEWEST - 10)
    # Now the newest ones begin at 10, and nothing before the tenth part of them is judged again.
    judge_run(Run.objects.latest("commit__position").pk)
    assert change_places() == [("regression", 10)]
    told = Regression.objects.get()
    assert (told.cause, told.proving) == ("driver or system", False)


def test_redetect_says_what_it_did(project: Project, case: Case) -> None:
    measure_line(factories.create_commits(project, 10), case, "step_time", SLOW)
    first, second = redetect_project(project), redetect_project(project)
    assert (dict(first.counts), first.opened) == ({"found": 1}, list(Regression.objects.all()))
    assert (dict(second.counts), second.opened) == ({"kept": 1}, [])


@pytest.mark.django_db(transaction=True)
def test_two_workers_make_one_regression() -> None:
    project = factories.create_project()
    line = factories.create_commits(project, 10)
    case, other = factories.create_case(project), factories.create_case(project, variant="other")
    last = [measure_line(line, each, "step_time", SLOW)[-1] for each in (case, other)]
    start = threading.Barrier(2)

    def work(run: Run) -> None:
        start.wait()
        judge_run(run.pk)
        connection.close()

    workers = [threading.Thread(target=work, args=[run]) for run in last]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    assert Regression.objects.get().changes.count() == 2
