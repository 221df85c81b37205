"""Which small steps of a counter are one gradual change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from dashboard.regressions.decision.continuation import decided_before
from dashboard.regressions.decision.facts import Change, Evidence, Snapshot
from dashboard.regressions.decision.gradual_changes import (
    GRADUAL,
    MOST_COMMITS,
    TOGETHER_WITHIN,
    Step,
    gradual_changes,
    has_grown_again,
    steps_weighed_together,
)
from dashboard.regressions.decision.grouping import Group, gradual_groups
from dashboard.regressions.decision.series_kinds import BETTER, WORSE
from tests.dashboard.regressions.decision.builders import make_change, make_regression, make_series

CALLS = make_series("function_calls")


def make_steps(*placed: tuple[int, float], series: str = "function_calls") -> list[Change]:
    """By position the factor by which a counter moves there."""
    steps, level = [], 1.0
    for position, factor in placed:
        sizes = {"before": level, "after": level * factor, "direction": WORSE if factor > 1 else BETTER}
        steps.append(make_change(make_series(series), position - 1, position, factor, **sizes))
        level *= factor
    return steps


def found_ranges(changes: Sequence[Change]) -> list[tuple[int, int, float]]:
    return [
        (change.range.good, change.range.bad, round(100 * (change.ratio or 0) - 100, 1))
        for change in gradual_changes(changes, [])
    ]


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([(1, 1.02), (2, 1.02)], []),
        ([(1, 1.02), (2, 1.02), (3, 1.02)], [(0, 3, 6.1)]),
        # What comes after it is less than as much again.
        ([(1, 1.02), (2, 1.02), (3, 1.02), (4, 1.02)], [(0, 3, 6.1)]),
        ([(at, 1.02) for at in range(1, 11)], [(0, 9, 19.5)]),
        ([(at, 1.02) for at in range(5, 100, 10)], [(4, 85, 19.5)]),
        # It began at the best level.
        ([(1, 1.03), (2, 0.96), (3, 1.03), (4, 1.03)], [(2, 4, 6.1)]),
        # A step that is told by itself parts what lies on both sides.
        ([(1, 1.03), (2, 1.3), (3, 1.03)], []),
        ([(1, 1.03), (2, 1.03), (3, 1.3), (4, 1.03), (5, 1.03)], [(0, 2, 6.1), (3, 5, 6.1)]),
        # Back at its level, and up again; or not all of the way back.
        ([(1, 1.03), (2, 1.03), (3, 1 / 1.06), (4, 1.03), (5, 1.03)], [(0, 2, 6.1), (3, 5, 6.1)]),
        ([(1, 1.03), (2, 1.03), (3, 1 / 1.02), (4, 1.03), (5, 1.03)], [(0, 2, 6.1)]),
    ],
)
def test_small_steps_that_would_open_a_regression_as_one(
    steps: list[tuple[int, float]], found: list[tuple[int, int, float]]
) -> None:
    assert found_ranges(make_steps(*steps)) == found


def test_what_has_stood_for_long_is_the_level_by_now() -> None:
    far = 1 + TOGETHER_WITHIN
    assert found_ranges(make_steps((1, 1.03), (far, 1.03))) == []
    assert found_ranges(make_steps((1, 1.03), (far - 1, 1.03))) == [(0, far - 1, 6.1)]


def test_a_growth_without_end_is_several() -> None:
    every = TOGETHER_WITHIN // 4
    found = found_ranges(make_steps(*((at, 1.03) for at in range(1, 2 * MOST_COMMITS, every))))
    assert len(found) > 1
    assert all(bad - good <= MOST_COMMITS for good, bad, _ in found)


def test_steps_between_which_one_is_missing_are_not_weighed_together() -> None:
    first, _, *rest = make_steps((1, 1.03), (2, 1.03), (3, 1.03), (4, 1.01))
    assert found_ranges([first, *rest]) == []


@pytest.mark.parametrize("series", ["step_time", "throughput", "peak_memory"])
def test_only_counters_have_them(series: str) -> None:
    assert found_ranges(make_steps(*((at, 1.02) for at in range(1, 11)), series=series)) == []


def test_more_calls_that_made_a_step_faster_are_not_counted() -> None:
    steps = make_steps((1, 1.03), (2, 1.03))
    faster = make_change(make_series("step_time"), 1, 2, 0.8, direction=BETTER)
    assert found_ranges([*steps, faster]) == []


def test_a_part_that_was_put_away_is_kept_apart() -> None:
    steps = make_steps(*((at, 1.03) for at in range(1, 5)))
    held = [replace(step, regression_id=1) for step in steps[:2]] + steps[2:]
    told = make_regression(steps[1])
    together = gradual_changes(held, [told])
    assert [(change.range.bad, change.regression_id) for change in together] == [(4, 1)]
    apart = gradual_changes(held, [replace(told, triaged_away=True)])
    assert [(change.range.bad, change.regression_id) for change in apart] == [(2, 1), (4, None)]


@pytest.mark.parametrize(
    ("series", "before", "now", "grown"),
    [
        ("function_calls", 1.06, 1.12, True),
        ("function_calls", 1.06, 1.10, False),
        # It began at a better level, or a commit was measured again.
        ("function_calls", 1.12, 1.06, False),
        ("scalar_reads", 31.2, 32.4, True),
        ("scalar_reads", 31.2, 31.8, False),
    ],
)
def test_what_is_worth_telling_by_itself_is_told_again(
    series: str, before: float, now: float, *, grown: bool
) -> None:
    told, change = (
        make_change(make_series(series), 0, 9, 1.0, before=1.0, after=after, gradual=True)
        for after in (before, now)
    )
    gradual = replace(make_regression(told), bisection=Evidence.of(GRADUAL, commits=9))
    assert has_grown_again(gradual, change) is grown
    assert not has_grown_again(make_regression(told), change)


def test_a_single_step_that_was_put_away_is_no_gradual_change() -> None:
    steps = make_steps(*((at, 1.02) for at in range(1, 4)))
    (change,) = gradual_changes(steps, [])
    decided = {"withdrawn": True, "triaged_away": True, "triaged_at": 1.0}
    single = make_regression(make_change(CALLS, 1, 2, 1.1), **decided)
    gradual = make_regression(change, 2, **decided, bisection=Evidence.of(GRADUAL, commits=3))
    found = Group(members=[change])
    assert decided_before(found, Snapshot("main", (), (single,))) is None
    assert decided_before(found, Snapshot("main", (), (single, gradual))) == gradual
    step = Group(members=[make_change(CALLS, 1, 2, 1.06)])
    assert decided_before(step, Snapshot("main", (), (single, gradual))) == single
    assert decided_before(step, Snapshot("main", (), (gradual,))) is None


def test_what_was_put_away_takes_in_no_other_counter() -> None:
    calls, other = (
        make_change(make_series("function_calls", configuration), good, bad, 1.06, gradual=True)
        for configuration, good, bad in ((1, 0, 5), (2, 4, 9))
    )
    told, held = make_regression(calls), replace(calls, regression_id=1)
    assert len(gradual_groups([held, other], [told])) == 1
    assert len(gradual_groups([held, other], [replace(told, triaged_away=True)])) == 2
    both = [held, replace(other, regression_id=1)]
    assert len(gradual_groups(both, [replace(told, triaged_away=True)])) == 1


def test_a_step_that_adds_up_asks_for_those_before_it() -> None:
    steps = [Step(at, at, 1.02**at, 1.02 ** (at + 1)) for at in range(5)]
    assert steps_weighed_together(CALLS, steps[:2], [1]) == set()
    assert steps_weighed_together(CALLS, steps[:3], [2]) == {0, 1, 2}
    assert steps_weighed_together(CALLS, [*steps[:2], steps[4]._replace(bad=200)], [4]) == set()


def test_a_step_that_begins_at_a_better_level_asks_for_those_after_it() -> None:
    steps = [Step(1, 10, 0.99, 1.03), Step(2, 50, 1.03, 1.05), Step(3, 151, 1.05, 1.07)]
    assert steps_weighed_together(CALLS, steps, [1]) == {1, 2}
