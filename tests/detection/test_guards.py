"""Where a quality leaves its guard's bounds: plain points, with the truth beside them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from dashboard.detection import GuardedPoint, Point, Series, judge_guarded
from dashboard.detection.guards import guard_crossings
from dashboard.detection.types import Better

GUARD = 3.0


def points_of(values: Sequence[float | None], better: Better = "higher") -> list[GuardedPoint]:
    sign = 1 if better == "higher" else -1
    return [GuardedPoint(value, failed=value is None or sign * value < sign * GUARD) for value in values]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([9, 9.2, 9.1, 2], [(3, 9.1, 2, "regression")]),
        ([9, 9, 2, 2.2, 9], [(2, 9, 2.1, "regression"), (4, 2.1, 9, "improvement")]),
        ([9, None, None, 9], [(1, 9, 0, "regression"), (3, 0, 9, "improvement")]),
        ([9, 2, None, 2], [(1, 9, 2, "regression"), (2, 9, 0, "regression")]),
        ([3.1, 2.9, 3.1, 2.9], []),
        ([2, 2.1, 2], []),
        ([None, None], []),
        ([2, 2, 9, 9], []),
        ([], []),
    ],
)
def test_a_guard_is_left_and_kept_again(
    values: list[float | None], found: list[tuple[int, float, float, str]]
) -> None:
    crossings = guard_crossings(points_of(values), "higher")
    assert [(row.index, row.before, row.after, row.direction) for row in crossings] == [
        (index, pytest.approx(before), pytest.approx(after), direction)
        for index, before, after, direction in found
    ]


def test_what_nothing_is_known_of_is_passed_over() -> None:
    points = [*points_of([9.0]), GuardedPoint(2.0, failed=None), *points_of([9.0, 2.0])]
    assert [row.index for row in guard_crossings(points, "higher")] == [3]


def test_a_loss_may_rise_from_below_zero() -> None:
    (lost,) = guard_crossings(points_of([-1.0, -1.2, 4.0], "lower"), "lower")
    assert (lost.before, lost.after) == (pytest.approx(-1.1), 4.0)
    (vanished, back) = guard_crossings(points_of([0.0, None, 0.2], "lower"), "lower")
    assert (vanished.after, back.before) == (1.0, 1.0), "what nobody measured, as a number"
    assert [row.doubts[0].code for row in (vanished, back)] == ["guard crossed", "reported again"]


def test_a_step_that_is_seen_both_ways_is_one_change() -> None:
    rng = np.random.default_rng(1)
    seeds = rng.normal(np.where(np.arange(24) < 16, 9.3, 2.0)[:, None], 0.4, (24, 3))
    points = [Point(float(row.mean()), tuple(row.tolist())) for row in seeds]
    found = judge_guarded(Series(points, "higher", "quality"), points_of([point.value for point in points]))
    assert [(change.index, change.direction) for change in found] == [(16, "regression")]


def test_what_is_lost_again_right_after_its_repair_is_a_loss_of_its_own() -> None:
    levels = [0.0012] * 8 + [2.23, 0.0012, 0.0012, 1.94, 0.0012, 2.23]
    points = [Point(level, (level / 2, level, 1.5 * level)) for level in levels]
    guarded = [GuardedPoint(level, failed=level > 0.06) for level in levels]
    found = judge_guarded(Series(points, "lower", "quality"), guarded, known=(8, 9, 11, 12))
    lost = [change.index for change in found if change.direction == "regression"]
    assert lost == [8, 11, 13]


@pytest.mark.parametrize(("after", "found"), [(6.0, []), (4.0, [12])])
def test_of_one_seed_only_a_large_step_is_more_than_luck(after: float, found: list[int]) -> None:
    values = [9.0] * 12 + [after] * 12
    series = Series([Point(value) for value in values], "higher", "quality")
    changes = judge_guarded(series, points_of(values), one_seed=True)
    assert [change.index for change in changes] == found
