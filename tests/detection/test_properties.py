"""What holds for any finite input."""

from __future__ import annotations

import math
import time
from dataclasses import astuple

import numpy as np
import pytest

from bench.detection.null_models import NULL_MODELS, simulate_null
from dashboard.detection import Point, Series, compare_samples, detect, judge_series, suspect
from tests.detection.builders import noise_factors, plain_series, step_levels

CASES = 10_000
TAILS = np.array([0.0, -0.0, 1e-320, -1e-300, 1e300, -1e308, 1.7e308, 1.0, -1.0])


def extreme_values(rng, n):
    """Values of one of the kinds that break numerics: huge, tiny, signed, rounded, heavy-tailed, constant."""
    kind = rng.integers(6)
    if kind == 0:
        return rng.choice(TAILS, n)
    if kind == 1:
        return rng.standard_cauchy(n) * 10.0 ** rng.integers(-200, 200)
    if kind == 2:
        return np.round(rng.normal(3, 1, n))
    if kind == 3:
        return np.exp(rng.normal(0, 100, n))
    if kind == 4:
        return np.full(n, rng.choice(TAILS))
    return rng.choice([1.0, 1.1], n) * rng.choice([1.0, 50.0], n, p=[0.95, 0.05])


@pytest.mark.parametrize("function", [detect, suspect])
def test_any_finite_values_have_an_ascending_answer(function):
    rng = np.random.default_rng(11)
    for _ in range(CASES // 2):
        values = extreme_values(rng, int(rng.integers(0, 30)))
        found = function(values)
        assert found == sorted(set(found))
        assert all(0 < i < len(values) for i in found)


@pytest.mark.parametrize("kind", ["time", "rate", "memory", "utilization", "counter", "quality"])
def test_any_finite_series_has_finite_changes(kind):
    rng = np.random.default_rng(13)
    for _ in range(CASES // 20):
        rows = extreme_values(rng, 3 * int(rng.integers(0, 30))).reshape(-1, 3)
        points = [Point(float(np.median(row)), tuple(row), bool(rng.random() < 0.1)) for row in rows]
        for change in judge_series(Series(points, "lower", kind, exact=bool(rng.integers(2)))):
            assert all(math.isfinite(x) for x in astuple(change)[:6])
            assert change.low <= change.ratio <= change.high
            assert 0 <= change.confidence <= 1


def test_any_finite_groups_compare():
    rng = np.random.default_rng(17)
    for _ in range(500):
        result = compare_samples(extreme_values(rng, 6), extreme_values(rng, 5))
        assert all(math.isfinite(x) for x in (result.ratio, result.low, result.high))


@pytest.mark.parametrize("factor", [1e-200, 3.0, 1e200])
def test_the_unit_does_not_matter(factor):
    values = np.repeat([1.0, 1.2, 0.9], 30) * noise_factors(90, 0.02)
    assert detect(values * factor) == detect(values) == [30, 60]


def test_up_and_down_are_the_same():
    values = np.repeat([1.0, 1.2, 0.9], 30) * noise_factors(90, 0.02)
    assert detect(1 / values) == detect(-values) == detect(values)


@pytest.mark.parametrize("model", NULL_MODELS)
def test_neither_unit_nor_direction_matter_in_any_noise(model):
    values = simulate_null(model, 5, 120)
    values[70:] *= 1.04
    assert detect(7e5 * values) == detect(values) == detect(1 / values) == detect(-values)
    assert suspect(7e5 * values) == suspect(values) == suspect(1 / values) == suspect(-values)


@pytest.mark.parametrize("model", NULL_MODELS)
def test_neither_unit_nor_direction_matter_to_a_judgement(model):
    values = simulate_null(model, 5, 120)
    values[70:] *= 1.2
    slower, unit, throughput = (
        [(change.index, change.direction) for change in judge_series(plain_series(*given))]
        for given in ((values, "time"), (7e5 * values, "time"), (1 / values, "rate", "higher"))
    )
    assert slower == unit == throughput
    assert [direction for index, direction in slower if abs(index - 70) <= 2] == ["regression"]


def test_points_left_out_only_move_the_place():
    values = np.repeat([1.0, 1.2], 30) * noise_factors(60, 0.02)
    gaps = [Point(value, tainted=i % 7 == 3) for i, value in enumerate(values)]
    (change,) = judge_series(Series(gaps, "lower", "time"))
    assert change.index == 30


def test_a_shift_does_not_matter_where_signs_differ():
    values = np.random.default_rng(2).normal(0, 1, 120) + np.repeat([-3.0, 9.0], 60)
    assert detect(values + 1.0) == detect(values) == [60]


@pytest.mark.parametrize("function", [detect, suspect, lambda values: judge_series(plain_series(values))])
def test_any_values_take_bounded_time(function):
    rng = np.random.default_rng(29)
    for _ in range(12):
        values = extreme_values(rng, 3000)
        begun = time.process_time()
        function(values)
        assert time.process_time() - begun < 1.0


@pytest.mark.parametrize("seed", range(5))
def test_the_same_change_stays_while_points_arrive(seed):
    values = step_levels(25, 40, 1.15) * noise_factors(65, 0.015, seed)
    found = [tuple(c.index for c in judge_series(plain_series(values[:n]))) for n in range(31, 66)]
    assert set(found) == {(25,)}


def test_a_change_stays_when_the_history_stops_being_short():
    values = step_levels(10, 30, 1.3) * noise_factors(40, 0.03, seed=4)
    known = []
    for n in range(12, 41):
        known = [change.index for change in judge_series(plain_series(values[:n]), known)]
        assert known == [10]


def test_the_time_grows_like_the_number_of_points():
    few, many = (seconds_to_detect(count) for count in (10_000, 40_000))
    assert few < 1.0
    # Four times the points: 4 where it is linear, 16 where it is quadratic.
    assert many < 9 * few


def seconds_to_detect(count: int) -> float:
    """Processor time, so that other work on this machine doesn't count; the least of three."""
    values = np.repeat([1.0, 1.05, 1.1, 1.15], count // 4) * noise_factors(count, 0.01)
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        assert detect(values) == [count // 4, count // 2, count * 3 // 4]
        seconds.append(time.process_time() - begun)
    return min(seconds)
