from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from dashboard.detection import Change, judge_series, steps_of_parts
from dashboard.detection.doubts import IN_PARTS
from dashboard.detection.parts import PartStep, are_distinct
from dashboard.detection.types import Doubt, Point, Series
from tests.detection.builders import noise_factors, plain_series, step_levels

COUNT, AT = 12, 6
# What each part takes of a step, and how much it varies from run to run: the noisiest hides the others.
PARTS = {"learn": (0.4, 0.02), "env": (0.4, 0.25), "log": (0.02, 0.02)}


def simulate_parts(seed: int = 0, **ratios: float) -> tuple[Series, dict[str, Series]]:
    """A whole and its parts, of which some step by these ratios at AT."""
    values = {
        name: share
        * noise_factors(COUNT, sigma, 10 * seed + k)
        * step_levels(AT, COUNT - AT, ratios.get(name, 1.0))
        for k, (name, (share, sigma)) in enumerate(PARTS.items())
    }
    return plain_series(sum(values.values())), {name: plain_series(part) for name, part in values.items()}


def find_in_parts(whole: Series, parts: Mapping[str, Series]) -> list[Change]:
    return steps_of_parts(whole, parts, (), judge_series(whole))


def test_a_part_shows_what_the_whole_hides() -> None:
    whole, parts = simulate_parts(learn=1.3)
    assert judge_series(whole) == []
    (change,) = find_in_parts(whole, parts)
    assert (change.index, change.direction) == (AT, "regression")
    assert change.low < 1 + 0.3 * 0.4 / 0.82 < change.high
    assert change.after / change.before == pytest.approx(change.ratio)
    assert Doubt(IN_PARTS, {"parts": ["learn"]}) in change.doubts


def test_a_part_that_gets_faster_is_an_improvement() -> None:
    (change,) = find_in_parts(*simulate_parts(seed=2, learn=0.7))
    assert (change.index, change.direction) == (AT, "improvement")


def test_a_part_that_takes_nothing_at_first_has_an_interval_too() -> None:
    whole, parts = simulate_parts()
    parts["check"] = plain_series([0.0] * AT + [0.12 + 0.001 * (k % 3) for k in range(COUNT - AT)])
    (change,) = find_in_parts(whole, parts)
    assert 1 < change.low <= change.ratio <= change.high < 1.3


def test_two_steps_have_their_own_levels() -> None:
    whole, parts = simulate_parts(seed=2, learn=1.3)
    parts["log"] = plain_series(0.1 * noise_factors(COUNT, 0.02, 5) * step_levels(COUNT - 3, 3, 3.0))
    first, second = find_in_parts(whole, parts)
    assert (first.index, second.index) == (AT, COUNT - 3)
    assert second.before == pytest.approx(np.median([point.value for point in whole.points[AT : COUNT - 3]]))


def test_two_parts_that_step_one_after_the_other_are_two_steps() -> None:
    """The whole shows one step of both: its first slow point was taken at a slow hour."""
    whole, parts = simulate_parts(seed=2)
    pace = np.array([1.0] * AT + [1.35] + [1.0] * (COUNT - AT - 1))
    first = 0.02 * noise_factors(COUNT, 0.02, 5) * step_levels(AT, COUNT - AT, 15.0)
    second = 0.02 * noise_factors(COUNT, 0.02, 6) * step_levels(AT + 1, COUNT - AT - 1, 15.0)
    parts |= {"push": plain_series(first * pace), "sample": plain_series(second * pace)}
    whole = plain_series(
        pace * sum(np.array([point.value for point in part.points]) for part in parts.values())
    )
    assert [change.index for change in judge_series(whole)] == [AT]
    (change,) = find_in_parts(whole, parts)
    assert (change.index, change.direction) == (AT + 1, "regression")
    assert Doubt(IN_PARTS, {"parts": ["sample"]}) in change.doubts


def test_what_moves_from_one_part_to_another_is_nothing() -> None:
    whole, parts = simulate_parts(learn=1.3)
    parts["targets"] = plain_series(0.4 * noise_factors(COUNT, 0.02, 7) * step_levels(AT, COUNT - AT, 0.7))
    assert find_in_parts(whole, parts) == []


def test_a_small_part_changes_nothing_for_the_whole() -> None:
    assert find_in_parts(*simulate_parts(log=2.0)) == []


def test_what_the_whole_shows_itself_is_told_once() -> None:
    whole, parts = simulate_parts(learn=3.0)
    assert [change.index for change in judge_series(whole)] == [AT]
    assert find_in_parts(whole, parts) == []


def test_parts_that_do_not_change_show_nothing() -> None:
    assert sum(bool(find_in_parts(*simulate_parts(seed))) for seed in range(100)) <= 3


def test_most_steps_are_seen_by_parts_where_few_are_without() -> None:
    histories = [simulate_parts(seed, learn=1.3) for seed in range(50)]
    alone = [AT in [change.index for change in judge_series(whole)] for whole, _ in histories]
    shown = [AT in [change.index for change in find_in_parts(*history)] for history in histories]
    assert sum(alone) <= 10
    assert sum(shown) >= 40
    assert not any(a and b for a, b in zip(alone, shown, strict=True))


def test_a_part_that_some_runs_lack_has_tainted_points_there() -> None:
    whole, parts = simulate_parts(learn=1.3)
    points = [
        Point(0.0, tainted=True) if index == AT - 1 else point
        for index, point in enumerate(parts["log"].points)
    ]
    parts["log"] = Series(points=points, better="lower", kind="time")
    assert [change.index for change in find_in_parts(whole, parts)] == [AT]


def test_without_parts_or_points_there_is_nothing() -> None:
    whole, _ = simulate_parts()
    assert steps_of_parts(whole, {}) == []
    assert steps_of_parts(plain_series([]), {"learn": plain_series([])}) == []


def test_a_value_that_is_not_finite_is_refused() -> None:
    whole, parts = simulate_parts()
    with pytest.raises(ValueError, match="finite"):
        steps_of_parts(whole, parts | {"env": plain_series([1.0, np.nan])})


def test_a_step_whose_levels_are_equal_tells_no_place() -> None:
    _, parts = simulate_parts(learn=1.3)
    (change,) = judge_series(parts["learn"])
    level = PartStep("learn", replace(change, after=change.before), parts["learn"])
    assert level.share(AT) == 0.5
    assert not are_distinct(level, PartStep("learn", replace(change, index=AT + 1), parts["learn"]))
