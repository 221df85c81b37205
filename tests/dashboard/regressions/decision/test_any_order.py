"""Random histories in any order of arrival end with the same regressions."""

from __future__ import annotations

import os
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dashboard.regressions.decision.builders import make_series
from tests.dashboard.regressions.decision.simulated_project import Planted, SimulatedProject

COUNT = 12
# The same histories each time; with `EXAMPLES=3000` new ones, for a day on which the decision was changed.
EXAMPLES = int(os.environ.get("EXAMPLES", "0"))
SOME = settings(max_examples=EXAMPLES or 150, derandomize=not EXAMPLES, deadline=None)
STEP_TIME, OTHER_CASE, MEMORY, CALLS = (
    make_series("step_time"),
    make_series("step_time", 2),
    make_series("peak_memory"),
    make_series("function_calls"),
)
OTHER_CALLS = make_series("function_calls", 2)
SLOWER = (1.25, 1.4, 1.8)
FACTORS = (*SLOWER, 0.6)
# No two series move alike: of two steps of one size the first that was proved is told.
POWERS = {STEP_TIME: 1.0, OTHER_CASE: 1.07, MEMORY: 1.2, CALLS: 1.1}

ANYWHERE = range(1, COUNT)
# A time that seems to step right beside a counter is taken for the same cause.
APART = (1, 4, 7, 10)

History = Sequence[Planted]
Place = tuple[str, int, int, frozenset[tuple[int, int]]]


@st.composite
def planted_histories(
    draw: st.DrawFn,
    factors: Sequence[float] = FACTORS,
    places: Sequence[int] = ANYWHERE,
    counters: bool = False,
) -> History:
    """Up to three commits that move one or more series; none moves a series by a little."""
    moving = [series for series in POWERS if counters or series != CALLS]
    planted = []
    for place in draw(st.lists(st.sampled_from(places), min_size=1, max_size=3, unique=True)):
        moved = draw(st.lists(st.sampled_from(moving), min_size=1, unique=True))
        factor = draw(st.sampled_from(factors))
        planted += [Planted(series, place, factor ** POWERS[series]) for series in moved]
    return planted


def live_regressions(project: SimulatedProject) -> set[Place]:
    """Where each live regression is, its state, and the changes that it holds."""
    return {
        (
            row.state,
            row.last_good.position,
            row.first_bad.position,
            frozenset(place for place, change in project.changes.items() if change.regression_id == row.pk),
        )
        for row in project.regressions.values()
        if not row.withdrawn
    }


def told_by(project: SimulatedProject) -> set[tuple[int, str]]:
    """By which metric each is told.

    Which of two cases that is may depend on which was proved first: the other is measured too only if it
    moved much more.
    """
    rows = project.regressions.values()
    return {(row.first_bad.position, row.series.metric.name) for row in rows if not row.withdrawn}


def measure_in_order(history: History, order: Sequence[int], patience: Sequence[bool]) -> SimulatedProject:
    """Commits are measured in this order; `patience`: where experiments are left waiting meanwhile."""
    project = SimulatedProject(COUNT, history)
    for position, waits in zip(order, patience, strict=True):
        project.measure(position)
        if not waits:
            project.answer_all()
    project.answer_all()
    return project


@SOME
@given(
    planted_histories(),
    st.permutations(range(COUNT)),
    st.lists(st.booleans(), min_size=COUNT, max_size=COUNT),
)
def test_in_any_order_of_arrival_every_planted_cause_is_one_confirmed_regression(
    history: History, order: Sequence[int], patience: Sequence[bool]
) -> None:
    in_order = measure_in_order(history, range(COUNT), [True] * COUNT)
    project = measure_in_order(history, order, patience)
    assert live_regressions(project) == live_regressions(in_order)
    worse = {planted.position for planted in history if planted.factor > 1}
    live = [row for row in project.regressions.values() if not row.withdrawn]
    assert {row.first_bad.position for row in live if row.state == "confirmed"} == worse
    assert all(row.range.width == 1 for row in live if row.state == "confirmed")
    assert not any(row.proving for row in live)


@SOME
@given(planted_histories(SLOWER), st.permutations(range(COUNT)))
def test_the_order_of_arrival_makes_no_difference_to_what_is_told(
    history: History, order: Sequence[int]
) -> None:
    """Where nothing got faster: what an improvement hid may have been proved at its smaller size before."""
    in_order = measure_in_order(history, range(COUNT), [False] * COUNT)
    assert told_by(measure_in_order(history, order, [False] * COUNT)) == told_by(in_order)


@SOME
@given(planted_histories(places=APART, counters=True), st.permutations(range(COUNT)))
def test_the_order_of_arrival_makes_no_difference_beside_counters(
    history: History, order: Sequence[int]
) -> None:
    in_order = measure_in_order(history, range(COUNT), [False] * COUNT)
    assert live_regressions(measure_in_order(history, order, [False] * COUNT)) == live_regressions(in_order)


@st.composite
def gradual_histories(draw: st.DrawFn) -> History:
    """Two counters that move by little at most commits."""
    small = st.sampled_from((0.95, 0.98, 1.0, 1.02, 1.03, 1.04, 1.06))
    return [
        Planted(series, place, factor)
        for series in (CALLS, OTHER_CALLS)
        for place, factor in zip(ANYWHERE, draw(st.tuples(*[small] * len(ANYWHERE))), strict=True)
        if factor != 1.0
    ]


@SOME
@given(gradual_histories(), st.permutations(range(COUNT)))
def test_the_order_of_arrival_makes_no_difference_to_what_came_gradually(
    history: History, order: Sequence[int]
) -> None:
    in_order = measure_in_order(history, range(COUNT), [False] * COUNT)
    assert live_regressions(measure_in_order(history, order, [False] * COUNT)) == live_regressions(in_order)


def test_what_is_decided_twice_stays() -> None:
    history = [Planted(STEP_TIME, 4, 1.4), Planted(MEMORY, 4, 1.8), Planted(OTHER_CASE, 8, 1.25)]
    project = measure_in_order(history, range(COUNT), [False] * COUNT)
    before = live_regressions(project)
    project.decide(focus=list(project.regressions))
    assert live_regressions(project) == before
    assert not project.asked


def test_a_step_beside_another_behind_an_improvement_is_not_lost() -> None:
    """Pairs from before the improvement to behind the step see little of either."""
    history = [Planted(STEP_TIME, 2, 0.6), Planted(STEP_TIME, 4, 1.8), Planted(STEP_TIME, 5, 1.4)]
    project = measure_in_order(history, [0, 1, 5, 3, 4, 2, *range(6, COUNT)], [False] * COUNT)
    live = [row for row in project.regressions.values() if not row.withdrawn]
    assert {row.first_bad.position for row in live if row.state == "confirmed"} == {4, 5}


def test_a_cause_is_not_told_by_a_series_that_was_refuted_there() -> None:
    """Three causes of two series lie in one range: bisecting one of them narrows the other's proof too."""
    history = [Planted(MEMORY, 1, 1.31), Planted(OTHER_CASE, 5, 1.25), Planted(OTHER_CASE, 8, 1.25)]
    project = measure_in_order(history, [0, 10, *range(2, 10), 1, 11], [False] * COUNT)
    assert told_by(project) == {(1, "peak_memory"), (5, "step_time"), (8, "step_time")}


def test_steps_that_points_tell_apart_later_are_not_one_that_came_gradually() -> None:
    """Of the whole step that is bisected first each commit has little."""
    history = [
        *(Planted(MEMORY, place, 1.31) for place in (1, 2)),
        Planted(OTHER_CASE, 2, 1.27),
        *(Planted(series, 8, 1.8 ** POWERS[series]) for series in (STEP_TIME, OTHER_CASE, MEMORY)),
    ]
    order, waiting = [11, 0, 1, 5, 2, 10, 7, 6, 8, 3, 4, 9], {11, 1, 5, 2, 10, 7, 8, 9}
    project = measure_in_order(history, order, [position in waiting for position in order])
    live = [row for row in project.regressions.values() if not row.withdrawn]
    assert {(row.state, row.last_good.position, row.first_bad.position) for row in live} == {
        ("confirmed", 0, 1),
        ("confirmed", 1, 2),
        ("confirmed", 7, 8),
    }
