"""Exact counters that come and go between a few values on the same code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from dashboard.detection import doubts, judge_series
from dashboard.detection.types import Change
from tests.detection.builders import plain_series


def judge_counter(values: Sequence[float]) -> list[Change]:
    return judge_series(plain_series(values, kind="counter", exact=True))


def steps(values: Sequence[float]) -> list[tuple[int, float, float]]:
    return [(change.index, change.before, change.after) for change in judge_counter(values)]


def opened_alerts(values: Sequence[float]) -> int:
    """How many regressions are seen as a history grows point by point."""
    seen: set[int] = set()
    for n in range(2, len(values) + 1):
        found = judge_counter(values[:n])
        seen |= {change.index for change in found if change.direction == "regression"}
    return len(seen)


def test_one_that_alternates_is_seen_once_and_says_so() -> None:
    found = judge_counter([3, 4] * 15)
    assert [change.direction for change in found] == ["regression", "improvement"]
    assert all(doubts.VARIES in [doubt.code for doubt in change.doubts] for change in found)
    assert opened_alerts([3, 4] * 15) == 1


@pytest.mark.parametrize("often", [0.1, 0.3, 0.5, 0.7])
def test_one_that_varies_at_random_is_hardly_ever_seen_twice(often: float) -> None:
    rng = np.random.default_rng(1)
    alerts = [opened_alerts((3 + (rng.random(30) < often)).tolist()) for _ in range(20)]
    assert max(alerts) <= 2
    assert np.mean(alerts) < 1.2


@pytest.mark.parametrize("often", [0.1, 0.3, 0.5])
def test_one_that_varies_is_seen_as_often_by_its_newest_points(often: float) -> None:
    """As a window of 400 points goes along: what falls out of it must not make news of what is in it."""
    values = 3.0 + (np.random.default_rng(2).random(700) < often)
    whole = plain_series(values.tolist(), kind="counter", exact=True)
    known = {change.index for change in judge_series(replace(whole, points=whole.points[:400]))}
    for start in range(1, len(values) - 399):
        cut = replace(whole, points=whole.points[start : start + 400], is_cut=True)
        found = judge_series(cut, [at - start for at in known if at >= start])
        settled = start + 40
        known = {at for at in known if at <= settled} | {
            start + change.index for change in found if start + change.index > settled
        }
    assert known == {change.index for change in judge_series(whole)}


def test_a_new_value_is_seen_at_once_though_others_come_and_go() -> None:
    assert steps([3, 4, 3, 4, 3, 4, 3, 7])[-1] == (7, 3, 7)


def test_a_fix_is_seen_at_once() -> None:
    assert steps([10, 10, 13, 13, 10]) == [(2, 10, 13), (4, 13, 10)]
    assert steps([10, 12, 15, 12]) == [(1, 10, 12), (2, 12, 15), (3, 15, 12)]


def test_what_is_back_to_stay_is_seen_where_it_came() -> None:
    before = [*[10] * 5, *[13] * 5, *[10] * 5]
    assert len(steps([*before, *[13] * 9])) == 2
    assert steps([*before, *[13] * 10])[2:] == [(15, 10, 13)]


def test_what_came_and_went_long_ago_is_seen_at_once() -> None:
    assert steps([10, 13, *[10] * 41, 13])[-1] == (43, 10, 13)
