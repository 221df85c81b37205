from __future__ import annotations

from dataclasses import replace

from dashboard.environments import RunEnvironments
from dashboard.models import Case, Change, Commit, Point, Project, Run, Series
from dashboard.regressions import changes
from dashboard.regressions.series.branch_line import BranchLine
from dashboard.regressions.series.history import RECENT, History, load_history, load_recent
from tests.dashboard import factories


def measured_series(line: list[Commit], case: Case, values: list[float]) -> Series:
    measured = [(commit, {"step_time": value}) for commit, value in zip(line, values, strict=True)]
    runs = factories.store_measured_runs(measured, case)
    return factories.get_series(runs[0], "step_time")


def sync_counts(past: History) -> dict[str, int]:
    found = changes.find_changes([past], RunEnvironments())
    return dict(changes.sync_changes([past], "main", found).counts)


def test_the_runs_of_a_commit_are_one_point(project: Project, case: Case) -> None:
    commit = factories.create_commit(project, 3)
    for value in (2.0, 1.0, 9.0):
        run = factories.store_measured_run(commit, case, {"step_time": value})
    point = load_history(factories.get_series(run, "step_time"), "main").measured[0]
    assert (point.value, point.position, len(point.samples), len(point.runs)) == (2.0, 3, 9, 3)


def test_a_tainted_run_does_not_count_beside_a_clean_one(project: Project, case: Case) -> None:
    commit = factories.create_commit(project, 3)
    factories.store_measured_run(commit, case, {"step_time": 9.0}, tainted=True)
    run = factories.store_measured_run(commit, case, {"step_time": 1.0})
    point = load_history(factories.get_series(run, "step_time"), "main").measured[0]
    assert (point.value, point.tainted) == (1.0, False)


def test_only_the_newest_points_are_read(project: Project, case: Case) -> None:
    found = measured_series(factories.create_commits(project, 30), case, factories.noisy_levels((30, 1.0)))
    past = load_history(found, "main", newest=20)
    assert (len(past.measured), past.positions[0], past.frozen_until) == (20, 10, 12)


def test_what_lies_behind_the_newest_points_stays(project: Project, case: Case) -> None:
    found = measured_series(
        factories.create_commits(project, 30), case, factories.noisy_levels((8, 1.0), (12, 1.4), (10, 2.0))
    )
    sync_counts(load_history(found, "main"))
    # Of the last level's change the size is told by fewer points; the first change isn't in sight.
    assert sync_counts(load_history(found, "main", newest=20)) == {"measured": 1}
    assert list(Change.objects.values_list("position", flat=True)) == [8, 20]


def test_two_changes_that_move_one_place_each_keep_their_rows(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 14)
    found = measured_series(line, case, factories.noisy_levels((5, 1.0), (4, 1.4), (5, 2.0)))
    past = load_history(found, "main")
    sync_counts(past)
    rows = list(Change.objects.order_by("position"))
    # As an earlier judgement may have placed them: each one commit before.
    for row in rows:
        Change.objects.filter(pk=row.pk).update(
            position=row.position - 1, first_bad=line[row.position - 1], last_good=line[row.position - 2]
        )
    assert sync_counts(past) == {"moved": 2}
    assert list(Change.objects.order_by("position")) == rows
    assert list(Change.objects.values_list("position", flat=True)) == [5, 9]


def test_a_step_that_is_new_beside_another_takes_nothing_from_it(project: Project, case: Case) -> None:
    """Two commits before a known change another one is found: the known one stays the row that it was."""
    found = measured_series(
        factories.create_commits(project, 20), case, factories.noisy_levels((10, 1.0), (10, 1.4))
    )
    past = load_history(found, "main")
    (known,) = changes.find_changes([past], RunEnvironments())[found.pk]
    changes.sync_changes([past], "main", {found.pk: [known]})
    row = Change.objects.get()
    index = known.change.index - 2
    beside = replace(
        known,
        change=replace(known.change, index=index, earliest=index, latest=index),
        last_good=past.measured[index - 1],
        first_bad=past.measured[index],
    )
    synced = changes.sync_changes([past], "main", {found.pk: [beside, known]})
    assert dict(synced.counts) == {"found": 1, "kept": 1}
    assert Change.objects.get(pk=row.pk).position == row.position


def test_a_new_commit_is_judged_by_the_newest_points_an_old_one_by_all(project: Project, case: Case) -> None:
    first = factories.store_measured_run(factories.create_commit(project, 0), case, {"step_time": 1.0})
    series, count = factories.get_series(first, "step_time"), RECENT + 100
    line = factories.create_commits(project, count - 1, first=1)
    shared = {"configuration": first.configuration, "repetitions": 3, "time_limit": 60, "state": first.state}
    runs = Run.objects.bulk_create(Run(commit=commit, **shared) for commit in line)
    Point.objects.bulk_create(
        Point(series=series, position=run.commit.position, run=run, value=1.0) for run in runs
    )
    main = BranchLine("main")
    (newest,) = load_recent([series], main, count - 1)
    assert (len(newest.measured), newest.frozen_until > 100) == (RECENT, True)
    (recent,) = load_recent([series], main, newest.frozen_until + 1)
    assert len(recent.measured) == RECENT
    (old,) = load_recent([series], main, newest.frozen_until)
    assert (len(old.measured), old.frozen_until) == (count, -1)
