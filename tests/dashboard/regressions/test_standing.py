"""What a regression says once its changes have moved or gone, and once pairs have measured it."""

from __future__ import annotations

import pytest

from dashboard.models import Commit, Limit, Metric, Project, Regression, Series
from dashboard.regressions import advance_proof
from tests.dashboard import factories
from tests.dashboard.factories import create_regression


@pytest.fixture
def line(project: Project) -> list[Commit]:
    return factories.create_commits(project, 12)


def test_a_regression_follows_its_change(line: list[Commit]) -> None:
    made = create_regression(line, 5, "step_time", 6)
    advance_proof(made.pk)
    made.refresh_from_db()
    assert (made.first_bad, made.last_good, made.ratio) == (line[6], line[5], 1.4)


def test_two_that_turn_out_to_be_of_one_commit_are_one(line: list[Commit]) -> None:
    first, second = create_regression(line, 5, "step_time", 5), create_regression(line, 7, "peak_memory", 5)
    advance_proof(second.pk)
    assert first.changes.count() == 2
    assert list(Regression.objects.filter(withdrawn_at=None)) == [first]


def test_one_that_joins_another_narrows_its_range(line: list[Commit]) -> None:
    first, second = create_regression(line, 5, "step_time", 5), create_regression(line, 7, "peak_memory", 5)
    first.changes.update(last_good=line[1])
    for regression in (first, second):
        advance_proof(regression.pk)
    first.refresh_from_db()
    assert (first.first_bad, first.last_good) == (line[5], line[4])


def test_several_that_move_on_stay_several(line: list[Commit]) -> None:
    made = [create_regression(line, at, "step_time", at + 2) for at in (3, 5, 7)]
    for regression in made:
        advance_proof(regression.pk)
    made = [Regression.objects.get(pk=regression.pk) for regression in made]
    assert [(regression.first_bad, regression.changes.count()) for regression in made] == [
        (line[5], 1),
        (line[7], 1),
        (line[9], 1),
    ]


def test_two_that_change_places_keep_them(line: list[Commit]) -> None:
    made = [create_regression(line, 5, "step_time", 7), create_regression(line, 7, "step_time", 5)]
    for regression in made:
        advance_proof(regression.pk)
    made = [Regression.objects.get(pk=regression.pk) for regression in made]
    assert [(regression.first_bad, regression.changes.count()) for regression in made] == [
        (line[5], 1),
        (line[7], 1),
    ]


def test_without_changes_it_is_withdrawn_and_kept(line: list[Commit]) -> None:
    made = create_regression(line, 5, "step_time", 5)
    made.changes.all().delete()
    advance_proof(made.pk)
    made.refresh_from_db()
    assert (made.withdrawn_at is None, made.first_bad) == (False, line[5])


def test_a_limit_is_what_it_was_once_the_change_that_joined_it_is_gone(
    line: list[Commit],
) -> None:
    made = create_regression(line, 5, "step_time", 5)
    made.changes.all().delete()
    run = line[5].runs.get()
    bound = {"maximum": 1, "value": 2, "crossed": True, "regression": made}
    Limit.objects.create(series=made.series, run=run, position=5, **bound)
    Regression.objects.update(proving=True)
    advance_proof(made.pk)
    made.refresh_from_db()
    assert (made.state, made.proving, made.withdrawn_at) == ("confirmed", False, None)


@pytest.mark.parametrize(("verdict", "purpose"), [("confirmed", "proof"), ("whole", "bisection")])
def test_interleaved_runs_say_how_large_it_is(line: list[Commit], verdict: str, purpose: str) -> None:
    made = create_regression(line, 6, "step_time", 6)
    points = made.changes.get()
    factories.create_ended_experiment(made, "confirmed", line[4], line[6], ratio=1.1, low=1.08, high=1.12)
    factories.create_ended_experiment(
        made, verdict, line[4], line[6], purpose, ratio=1.09, low=1.07, high=1.11
    )
    advance_proof(made.pk)
    made.refresh_from_db()
    assert (made.ratio, made.low, made.high) == (1.09, 1.07, 1.11)
    assert (made.after, made.level_after) == (points.after, pytest.approx(1.09 * points.before))


def test_what_was_counted_is_told_to_the_last_digit() -> None:
    metric = Metric(name="function_calls", better="lower", kind="counter")
    counted = Regression(series=Series(metric=metric), before=50.0, after=71.0, ratio=1.4200000000000002)
    assert 50 * counted.ratio != counted.level_after == 71


def test_few_pairs_are_believed_over_points_that_only_seem_sure(line: list[Commit]) -> None:
    made = create_regression(line, 6, "step_time", 6)
    made.changes.update(ratio=1.15, low=1.12, high=1.19)
    factories.create_ended_experiment(made, "confirmed", line[5], line[6], ratio=1.099, low=1.043, high=1.16)
    advance_proof(made.pk)
    made.refresh_from_db()
    assert (made.ratio, made.low, made.high) == (1.099, 1.043, 1.16)


@pytest.mark.parametrize("state", ["confirmed", "refuted", "undecided"])
def test_the_verdict_on_its_range_is_its_state(line: list[Commit], state: str) -> None:
    made = create_regression(line, 6, "step_time", 6)
    factories.create_ended_experiment(made, state, line[5], line[6])
    advance_proof(made.pk)
    made.refresh_from_db()
    assert (made.state, made.first_bad) == (state, line[6])


def test_what_was_refuted_in_one_range_may_be_true_of_another(line: list[Commit]) -> None:
    made = create_regression(line, 5, "step_time", 7)
    factories.create_ended_experiment(made, "refuted", line[4], line[5])
    advance_proof(made.pk)
    made.refresh_from_db()
    assert (made.state, made.first_bad) == ("suspected", line[7])


def test_a_bisection_says_where_it_is(line: list[Commit]) -> None:
    made = create_regression(line, 6, "step_time", 6)
    factories.create_ended_experiment(made, "confirmed", line[3], line[8])
    for commit, verdict in ((line[5], "none"), (line[7], "whole"), (line[6], "none")):
        factories.create_ended_experiment(made, verdict, line[3], commit, "bisection")
    advance_proof(made.pk)
    made.refresh_from_db()
    assert (made.last_good, made.first_bad) == (line[6], line[7])


def test_what_was_confirmed_stays_without_its_change(line: list[Commit]) -> None:
    made = create_regression(line, 6, "step_time", 6)
    factories.create_ended_experiment(made, "confirmed", line[5], line[6])
    made.changes.all().delete()
    advance_proof(made.pk)
    made.refresh_from_db()
    assert (made.withdrawn_at, made.state) == (None, "confirmed")
