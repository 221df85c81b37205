"""Noisy stretches, which look like steps to a model of one noise."""

from __future__ import annotations

import numpy as np
import pytest

from dashboard.detection import detect
from dashboard.detection.levels import drop_weakest, robust_level
from dashboard.detection.noisy_stretches import drop_noisy_stretches, level_advantage
from tests.detection.builders import noise_factors, step_levels

CALM = np.random.default_rng(1).normal(size=30)
LOUD = np.array([2.0, 6.0, -1.0, 8.0, 3.0, 5.0])  # five of six on one side, as may happen


def test_a_level_as_calm_as_before_beats_a_noisy_stretch():
    assert level_advantage(CALM, 4.0 + CALM[:6]) > 8.0
    assert level_advantage(CALM, LOUD) < 0.0


def test_more_points_say_more():
    advantages = [level_advantage(CALM, 3.0 + CALM[:points]) for points in (4, 8, 16)]
    assert advantages == sorted(advantages)


def test_a_noisy_stretch_may_begin_before_the_step():
    before = np.concatenate([CALM[:24], [-7.0, 6.0, -5.0, 7.0, -6.0, 6.0]])
    assert level_advantage(before, LOUD) <= level_advantage(CALM, LOUD)


@pytest.mark.parametrize("direction", [1, -1])
def test_either_side_may_be_the_noisy_one(direction):
    values = np.concatenate([CALM, LOUD])[::direction]
    start = 30 if direction == 1 else 6
    assert drop_noisy_stretches([start], values, 1.0, 8.0, {}) == []


def test_a_known_start_needs_less():
    values = np.concatenate([CALM, 2.5 + CALM[:4]])
    advantage = level_advantage(values[:30], values[30:])
    assert drop_noisy_stretches([30], values, 1.0, advantage + 0.1, {}) == []
    assert drop_noisy_stretches([30], values, 1.0, advantage + 0.1, {30: 0.5}) == [30]


def test_a_step_into_a_noisier_level_is_found_once_it_has_points():
    values = step_levels(60, 40, 1.2)
    values[:60] *= noise_factors(60, 0.01)
    values[60:] *= noise_factors(40, 0.02, seed=1)
    assert detect(values) == [60]


@pytest.mark.parametrize("seed", range(3))
def test_a_step_within_the_baseline_is_put_to_its_place_first(seed):
    values = step_levels(10, 50, 1.1) * noise_factors(60, 0.01, seed=seed)
    assert detect(values) == [10]


def test_a_robust_level_is_a_mean_without_outliers_and_bounds_them():
    assert robust_level(CALM[:9] * 0.1, 1.0) == pytest.approx(np.mean(CALM[:9] * 0.1))
    assert robust_level(np.array([0.0, 0.0, 0.0, 1000.0]), 1.0) == pytest.approx(1.5 / 4)


def test_the_weakest_start_goes_first_and_the_others_are_judged_anew():
    lengths = {(0, 5, 10): 1, (5, 10, 30): 2, (0, 10, 30): 9}
    assert drop_weakest([5, 10], 30, lambda a, b, c: lengths[a, b, c], 3) == [10]
