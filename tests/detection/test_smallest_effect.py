"""The smallest step that a series would show, and that an experiment would prove."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest

from dashboard.detection import Point, Series, judge_series
from dashboard.detection.relevance import EFFECT_FLOORS
from dashboard.detection.smallest_effect import minimum_detectable_effect, noise_and_effects
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


@pytest.mark.parametrize("n", [5, 10])
def test_beside_an_older_step_a_new_one_has_to_be_larger(n: int):
    """`detect` takes both for wander, until it has found them: what is told is found there all the same."""
    found = 0
    for seed in range(40):
        noise = np.random.default_rng(seed).normal(0, 0.02, 40 + n)
        history = noise + 0.15 * (np.arange(40 + n) >= 22)
        before = plain_series(np.exp(history[:40]).tolist())
        known = [change.index for change in judge_series(before)]
        told = minimum_detectable_effect(before, n)
        assert told > minimum_detectable_effect(plain_series(np.exp(noise[:40]).tolist()), n)
        moved = history + math.log1p(told) * (np.arange(40 + n) >= 40)
        changes = judge_series(plain_series(np.exp(moved).tolist()), known)
        found += any(abs(change.index - 40) <= 3 for change in changes)
    assert found >= 28


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


@pytest.mark.parametrize(
    ("between", "within", "source"), [(0.05, 0.005, "runs"), (0.002, 0.05, "repetitions")]
)
def test_noise_is_told_by_where_it_comes_from(between: float, within: float, source: str) -> None:
    series = repeated_series(random.Random(3), [1.0] * 40, between, within)  # noqa: S311
    found, _ = noise_and_effects(series, [1])
    assert found
    assert found.source == source
    assert 0.6 * max(between, 0.76 * within) < found.deviation < 1.6 * max(between, 0.76 * within)


def test_runs_without_repetitions_tell_no_source() -> None:
    found, _ = noise_and_effects(plain_series(noise_factors(60, 0.02)), [1])
    assert found
    assert found.source is None
    assert noise_and_effects(plain_series([1.0]), [1])[0] is None
