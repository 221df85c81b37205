from __future__ import annotations

import pytest
from dashboard.regressions.settling import settle, settle_all

from dashboard.models import Change, Commit, Project, Regression
from tests.dashboard import factories


@pytest.fixture
def line(project: Project) -> list[Commit]:
    return factories.create_commits(project, 12)


def regression(line: list[Commit], at: int, name: str, found_at: int, after: float = 1.4) -> Regression:
    """A regression at a commit whose one change was found at another."""
    project = line[0].project
    of = project.cases.first() or factories.create_case(project)
    series = factories.get_series(factories.create_run(line[found_at], of), name)
    made = Regression.objects.create(
        project=project, first_bad=line[at], last_good=line[at - 1], series=series, before=1, after=after
    )
    Change.objects.create(
        series=series,
        first_bad=line[found_at],
        last_good=line[found_at - 1],
        position=found_at,
        direction="regression",
        before=1,
        after=after,
        ratio=after,
        low=after - 0.1,
        high=after + 0.1,
        confidence=0.99,
        regression=made,
    )
    return made


def test_a_regression_follows_its_change(project: Project, line: list[Commit]) -> None:
    made = regression(line, 5, "step_time", 6)
    settle(project, made)
    made.refresh_from_db()
    assert (made.first_bad, made.last_good, made.ratio) == (line[6], line[5], 1.4)


def test_two_that_turn_out_to_be_of_one_commit_are_one(project: Project, line: list[Commit]) -> None:
    first, second = regression(line, 5, "step_time", 5), regression(line, 7, "peak_memory", 5)
    settle(project, second)
    assert first.changes.count() == 2
    assert list(Regression.objects.filter(withdrawn_at=None)) == [first]


def test_one_that_joins_another_narrows_its_range(project: Project, line: list[Commit]) -> None:
    first, second = regression(line, 5, "step_time", 5), regression(line, 7, "peak_memory", 5)
    first.changes.update(last_good=line[1])
    settle_all(project, [first, second])
    first.refresh_from_db()
    assert (first.first_bad, first.last_good) == (line[5], line[4])


def test_several_that_move_on_stay_several(project: Project, line: list[Commit]) -> None:
    made = [regression(line, at, "step_time", at + 2) for at in (3, 5, 7)]
    settle_all(project, made)
    assert [(one.first_bad, one.changes.count()) for one in made] == [
        (line[5], 1),
        (line[7], 1),
        (line[9], 1),
    ]


def test_two_that_change_places_keep_them(project: Project, line: list[Commit]) -> None:
    made = [regression(line, 5, "step_time", 7), regression(line, 7, "step_time", 5)]
    settle_all(project, made)
    assert [(one.first_bad, one.changes.count()) for one in made] == [(line[5], 1), (line[7], 1)]


def test_without_changes_it_is_withdrawn_and_kept(project: Project, line: list[Commit]) -> None:
    made = regression(line, 5, "step_time", 5)
    made.changes.all().delete()
    assert settle(project, made) is None
    made.refresh_from_db()
    assert (made.withdrawn_at is None, made.first_bad) == (False, line[5])


def test_a_limit_is_what_it_was_once_the_change_that_joined_it_is_gone(
    project: Project, line: list[Commit]
) -> None:
    made = regression(line, 5, "step_time", 5)
    made.changes.all().delete()
    Regression.objects.update(limit="step_time is 2 s, its limit is at most 1 s", proving=True)
    made.refresh_from_db()
    settle(project, made)
    made.refresh_from_db()
    assert (made.state, made.proving, made.withdrawn_at) == ("confirmed", False, None)


@pytest.mark.parametrize(("verdict", "purpose"), [("confirmed", "confirm"), ("bad", "bisect")])
def test_interleaved_runs_say_how_large_it_is(
    project: Project, line: list[Commit], verdict: str, purpose: str
) -> None:
    made = regression(line, 6, "step_time", 6)
    points = made.changes.get()
    factories.create_ended_experiment(made, "confirmed", line[4], line[6], ratio=1.1, low=1.08, high=1.12)
    factories.create_ended_experiment(
        made, verdict, line[4], line[6], purpose, ratio=1.09, low=1.07, high=1.11
    )
    settle(project, made)
    made.refresh_from_db()
    assert (made.ratio, made.low, made.high) == (1.09, 1.07, 1.11)
    assert (made.after, made.level_after) == (points.after, pytest.approx(1.09 * points.before))


def test_few_pairs_are_believed_over_points_that_only_seem_sure(project: Project, line: list[Commit]) -> None:
    made = regression(line, 6, "step_time", 6)
    made.changes.update(ratio=1.15, low=1.12, high=1.19)
    factories.create_ended_experiment(made, "confirmed", line[5], line[6], ratio=1.099, low=1.043, high=1.16)
    settle(project, made)
    made.refresh_from_db()
    assert (made.ratio, made.low, made.high) == (1.099, 1.043, 1.16)


@pytest.mark.parametrize("state", ["confirmed", "refuted", "undecided"])
def test_the_verdict_on_its_range_is_its_state(project: Project, line: list[Commit], state: str) -> None:
    made = regression(line, 6, "step_time", 6)
    factories.create_ended_experiment(made, state, line[5], line[6])
    settle(project, made)
    made.refresh_from_db()
    assert (made.state, made.first_bad) == (state, line[6])


def test_what_was_refuted_in_one_range_may_be_true_of_another(project: Project, line: list[Commit]) -> None:
    made = regression(line, 5, "step_time", 7)
    factories.create_ended_experiment(made, "refuted", line[4], line[5])
    settle(project, made)
    made.refresh_from_db()
    assert (made.state, made.first_bad) == ("suspected", line[7])


def test_a_bisection_says_where_it_is(project: Project, line: list[Commit]) -> None:
    made = regression(line, 6, "step_time", 6)
    factories.create_ended_experiment(made, "confirmed", line[3], line[8])
    for commit, verdict in ((line[5], "good"), (line[7], "bad"), (line[6], "good")):
        factories.create_ended_experiment(made, verdict, line[3], commit, "bisect")
    settle(project, made)
    made.refresh_from_db()
    assert (made.last_good, made.first_bad) == (line[6], line[7])


def test_what_was_confirmed_stays_without_its_change(project: Project, line: list[Commit]) -> None:
    made = regression(line, 6, "step_time", 6)
    factories.create_ended_experiment(made, "confirmed", line[5], line[6])
    made.changes.all().delete()
    settle(project, made)
    made.refresh_from_db()
    assert (made.withdrawn_at, made.state) == (None, "confirmed")
