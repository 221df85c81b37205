"""The smallest step that a series would show, and that an experiment would prove."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest

from dashboard.detection import Point, Series, judge_series
from dashboard.detection.paired_parts import decide_step
from dashboard.detection.paired_steps import LARGEST_STEP, ComparedSteps, estimate_by_steps
from dashboard.detection.pairs import ERROR, estimate_share, step_verdict
from dashboard.detection.relevance import EFFECT_FLOORS
from dashboard.detection.smallest_effect import (
    POWER,
    StepSpread,
    measure_run_noise,
    measure_step_spread,
    minimum_detectable_effect,
    provable_by_either,
    provable_effect,
)
from tests.detection.builders import noise_factors, plain_series


def test_one_point_of_a_noisy_metric_shows_nothing():
    assert minimum_detectable_effect(plain_series(noise_factors(16, 0.02)), 1) == math.inf


def test_more_points_show_less():
    wild = plain_series(noise_factors(16, 0.1))
    effects = [minimum_detectable_effect(wild, n) for n in (2, 3, 6)]
    assert effects == sorted(effects, reverse=True)
    assert effects[0] > effects[-1]


def test_a_quiet_series_is_bounded_by_the_floor():
    quiet = plain_series([1.0] * 16)
    assert minimum_detectable_effect(quiet, 5) == EFFECT_FLOORS["time"].short


def test_exact_counters_show_everything():
    assert minimum_detectable_effect(plain_series([5, 5], kind="counter", exact=True), 1) == 0.0


def test_an_empty_series_shows_nothing():
    assert minimum_detectable_effect(plain_series([]), 5) == math.inf


def test_no_points_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        minimum_detectable_effect(plain_series([1.0]), 0)


def test_a_long_plain_series_asks_for_as_many_points_as_detect():
    plain = plain_series(noise_factors(100, 0.02))
    assert minimum_detectable_effect(plain, 3) == math.inf
    # Four points pay only where their own noise is small; five do nearly always.
    assert minimum_detectable_effect(plain, 4, power=0.4) < 0.15
    assert minimum_detectable_effect(plain, 4) == math.inf
    assert minimum_detectable_effect(plain, 5) < 0.15


def repeated_series(
    random_runs: random.Random, levels: Sequence[float], between: float, within: float
) -> Series:
    """A step time of three repetitions a run, whose noise is between runs and between repetitions."""
    points = []
    for level in levels:
        value = level * math.exp(random_runs.gauss(0, between))
        samples = tuple(value * math.exp(random_runs.gauss(0, within)) for _ in range(3))
        points.append(Point(float(np.median(samples)), samples))
    return Series(points, better="lower", kind="time")


@pytest.mark.parametrize("n", [2, 10])
def test_detection_finds_the_smallest_step_that_is_told(n: int) -> None:
    """And not a third of it: the figure is neither a boast nor an excuse."""
    found = {1.0: 0, 1 / 3: 0}
    for seed in range(40):
        told = minimum_detectable_effect(repeated_series(random.Random(seed), [1.0] * 40, 0.01, 0.03), n)  # noqa: S311
        for part in found:
            levels = [1.0] * 40 + [1 + part * told] * n
            changes = judge_series(repeated_series(random.Random(seed), levels, 0.01, 0.03))  # noqa: S311
            found[part] += any(change.index >= 38 for change in changes)
    assert found[1.0] >= 0.65 * 40
    assert found[1 / 3] <= 0.1 * 40


def test_pairs_prove_the_smallest_step_that_is_told() -> None:
    deviation, count = 0.03, 24
    told = provable_effect(deviation, count)
    found = {1.0: 0, 1 / 3: 0}
    for part in found:
        for seed in range(100):
            drawn = random.Random(seed)  # noqa: S311
            shares = [
                (math.log1p(part * told) + drawn.gauss(0, deviation)) / math.log1p(told) for _ in range(count)
            ]
            estimate = estimate_share([0.0] * count, shares, slowed=False)
            found[part] += step_verdict(estimate, 0.0) == "confirmed"
    assert abs(found[1.0] / 100 - POWER) < 0.12
    assert found[1 / 3] < 30


def test_no_pairs_prove_nothing() -> None:
    assert provable_effect(0.01, 0) == provable_effect(0.01, 3) == math.inf
    assert provable_by_either(0.01, StepSpread(40, 0.003, 0.0), 0) == math.inf


@pytest.mark.parametrize(
    ("of_means", "of_steps", "count"), [(0.05, 0.015, 60), (0.03, 0.012, 24), (0.05, 0.003, 20)]
)
def test_single_steps_prove_the_smallest_step_that_is_told(
    of_means: float, of_steps: float, count: int
) -> None:
    """Beside the means, which have to agree: as an experiment is decided after so many pairs."""
    kinds_error = of_steps / 20
    told = provable_by_either(of_means, StepSpread(count, of_steps, kinds_error), count)
    assert told < 0.6 * provable_effect(of_means, count)
    found = {1.0: 0, 1 / 3: 0}
    for part in found:
        for seed in range(200):
            drawn, moved = np.random.default_rng(seed), math.log1p(part * told)
            compared = ComparedSteps(
                drawn.normal(moved, of_steps, count), drawn.normal(0, kinds_error), kinds_error
            )
            means = drawn.normal(moved, of_means, count) / math.log1p(told)
            whole = estimate_share([0.0] * count, means.tolist(), error=ERROR / 2, slowed=False)
            first = [True, False] * (count // 2)
            steps = estimate_by_steps(compared, first, math.log1p(told), 0.003, ERROR / 2)
            found[part] += decide_step(whole, steps, None, 0.0) == "confirmed"
    assert abs(found[1.0] / 200 - POWER) < 0.12
    assert found[1 / 3] < 60


def test_large_steps_are_proved_by_means() -> None:
    wild = StepSpread(20, 0.2, 0.0)
    assert provable_by_either(0.2, wild, 20) == provable_effect(0.2, 20, ERROR / 2) > LARGEST_STEP


def test_the_spread_of_steps_is_that_which_is_weighed() -> None:
    """Without who began, and one that is far off as a bounded one."""
    drawn, first = np.random.default_rng(3), [True, False] * 30
    typical = drawn.normal(0.0, 0.01, 60) + np.where(first, 0.02, -0.02)
    typical[7] = 2.0
    found = measure_step_spread(typical.tolist(), first, 0.001, 0.003)
    assert found is not None
    assert 0.005 < found.deviation < 0.025
    assert measure_step_spread([0.0] * 60, first, 0.001, 0.003) == StepSpread(60, 0.003, 0.001)
    assert measure_step_spread([0.0] * 5, [True] * 5, 0.001, 0.003) is None


@pytest.mark.parametrize(
    ("between", "within", "source"), [(0.05, 0.005, "runs"), (0.002, 0.05, "repetitions")]
)
def test_noise_is_told_by_where_it_comes_from(between: float, within: float, source: str) -> None:
    found = measure_run_noise(repeated_series(random.Random(3), [1.0] * 40, between, within))  # noqa: S311
    assert found
    assert found.source == source
    assert 0.6 * max(between, 0.76 * within) < found.deviation < 1.6 * max(between, 0.76 * within)


def test_runs_without_repetitions_tell_no_source() -> None:
    found = measure_run_noise(plain_series(noise_factors(60, 0.02)))
    assert found
    assert found.source is None
    assert measure_run_noise(plain_series([1.0])) is None
