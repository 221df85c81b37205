"""Steps of parts that are small for the whole, within the risk of a look; and work that only moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import pytest

from dashboard.detection import Change, judge_series, steps_of_parts
from dashboard.detection.common_noise import without_common_noise
from dashboard.detection.doubts import IN_PARTS, MOVED
from dashboard.detection.step_p_value import step_p_value
from dashboard.detection.types import Point, Series
from tests.detection.builders import noise_factors, plain_series, step_levels

COUNT, AT = 100, 80
SHARES = {"learn": 0.4, "env": 0.3, "act": 0.15, "sample": 0.1, "log": 0.05}
RISK = 0.01 / 30
OWN_NOISE = 0.01


def simulate_parts(
    seed: int = 0, own: float = OWN_NOISE, **ratios: float
) -> tuple[Series, dict[str, Series]]:
    """Parts of runs that are slow and fast together, of which some step by these ratios at AT."""
    pace = noise_factors(COUNT, 0.04, 100 + seed)
    values = {
        name: share
        * pace
        * noise_factors(COUNT, own, 10 * seed + k)
        * step_levels(AT, COUNT - AT, ratios.get(name, 1.0))
        for k, (name, share) in enumerate(SHARES.items())
    }
    return plain_series(sum(values.values())), {name: plain_series(part) for name, part in values.items()}


def sampled_series(values: Sequence[float]) -> Series:
    return Series([Point(value, (0.997 * value, value, 1.003 * value)) for value in values], "lower", "time")


def find_in_parts(whole: Series, parts: Mapping[str, Series], risk: float = RISK) -> list[Change]:
    return steps_of_parts(whole, parts, (), judge_series(whole), risk)


def test_a_step_of_one_per_cent_of_the_whole_is_found_in_its_part() -> None:
    whole, parts = simulate_parts(sample=1.1)
    assert judge_series(whole) == []
    (change,) = find_in_parts(whole, parts)
    assert (change.index, change.direction) == (AT, "regression")
    assert change.ratio == pytest.approx(1.01, abs=0.003)
    assert change.doubts[0].code == IN_PARTS
    assert cast(float, change.doubts[0].about["p_value"]) < RISK
    assert change.doubts[0].about["parts"] == ["sample"]


def test_without_a_risk_no_such_step_is_told() -> None:
    assert find_in_parts(*simulate_parts(sample=1.1), risk=0.0) == []


def test_what_costs_less_than_half_a_per_cent_of_the_whole_is_not_told() -> None:
    assert find_in_parts(*simulate_parts(log=1.06)) == []


def test_a_hundred_steady_parts_more_hide_no_clear_step_and_add_none() -> None:
    whole, parts = simulate_parts(seed=3, sample=1.2)
    more = {f"part {k}": plain_series(0.001 * noise_factors(COUNT, 0.03, 500 + k)) for k in range(100)}
    (change,) = find_in_parts(whole, parts | more)
    assert change.index == AT
    assert change.doubts[0].about["parts"] == ["sample"]


def test_histories_without_a_step_show_none() -> None:
    assert [find_in_parts(*simulate_parts(seed, own=0.03)) for seed in range(40)] == [[]] * 40


def test_what_was_told_is_told_again_after_its_evidence_has_worn_off() -> None:
    whole, parts = simulate_parts(seed=1, sample=1.1)
    assert [change.index for change in steps_of_parts(whole, parts, [AT], (), RISK / 1e9)] == [AT]


def test_work_that_moves_from_one_part_to_another_costs_nothing() -> None:
    (change,) = find_in_parts(*simulate_parts(learn=0.95, sample=1.2))
    assert (change.index, change.direction) == (AT, "moved")
    assert change.low < 1 < change.high
    (doubt,) = change.doubts
    assert (doubt.code, doubt.about["from"], doubt.about["to"]) == (MOVED, ["learn"], ["sample"])
    assert doubt.about["share"] == pytest.approx(0.02, abs=0.005)


def test_a_place_where_the_whole_steps_has_no_move_beside() -> None:
    whole, parts = simulate_parts(learn=0.95, sample=1.2)
    shifted = plain_series(np.array([p.value for p in whole.points]) * step_levels(AT, COUNT - AT, 1.3))
    found = judge_series(shifted)
    assert [change.index for change in found] == [AT]
    assert steps_of_parts(shifted, parts, (), found, RISK) == []


def test_a_part_with_another_name_is_moved_work() -> None:
    whole, parts = simulate_parts()
    old = [point.value for point in parts["env"].points]
    parts["env"] = sampled_series([*old[:AT], *[0.0] * (COUNT - AT)])
    parts["environment"] = sampled_series([*[0.0] * AT, *old[AT:]])
    (change,) = find_in_parts(whole, parts)
    assert (change.direction, change.doubts[0].about["to"]) == ("moved", ["environment"])


def test_what_the_whole_contradicts_is_not_told() -> None:
    """A part vanishes and the whole takes as long as ever: others must have taken its work over."""
    whole, parts = simulate_parts()
    old = [point.value for point in parts["env"].points]
    parts["env"] = sampled_series([*old[:AT], *[0.0] * (COUNT - AT)])
    assert find_in_parts(whole, parts) == []


def test_more_than_moved_is_a_regression() -> None:
    (change,) = find_in_parts(*simulate_parts(learn=0.95, sample=1.5))
    assert (change.index, change.direction) == (AT, "regression")


def test_what_all_parts_share_is_taken_out_and_a_step_of_one_stays() -> None:
    _, parts = simulate_parts(sample=1.1)
    apart = without_common_noise(parts)
    spreads = [np.std(np.log([point.value for point in apart[name].points[:AT]])) for name in SHARES]
    assert max(spreads) < 0.02
    before, after = (
        np.median([p.value for p in apart["sample"].points[a:b]]) for a, b in ((0, AT), (AT, COUNT))
    )
    assert after / before == pytest.approx(1.1, abs=0.02)


def test_parts_that_share_nothing_stay_as_they_are() -> None:
    parts = {str(k): plain_series(noise_factors(COUNT, 0.02, k)) for k in range(6)}
    assert without_common_noise(parts) == parts


def test_a_p_value_needs_a_level_before() -> None:
    values = np.array([*[0.0] * 8, *[1.0] * 8])
    assert step_p_value(values, 8) == 1.0


def test_p_values_of_wandering_series_are_not_below_a_risk_more_often_than_it_says() -> None:
    random = np.random.default_rng(5)
    below = 0
    for _ in range(400):
        wander = np.empty(80)
        wander[0] = random.normal()
        for k in range(1, 80):
            wander[k] = 0.8 * wander[k - 1] + 0.6 * random.normal()
        below += step_p_value(random.normal(size=80) + 0.5 * wander, 60) < 0.01
    assert below <= 4
