"""Slopes and wander aren't steps."""

from __future__ import annotations

import numpy as np
import pytest

from bench.detection.simulation import autoregressive_wander
from dashboard.detection import detect, judge_series
from dashboard.detection.drift import drop_slopes, slope_cost
from dashboard.detection.noise import lag_noise, largest_lag_noise, rounding_noise
from tests.detection.builders import noise_factors, plain_series, step_levels


def test_a_long_slope_has_no_step():
    values = np.linspace(1.0, 2.0, 200) * noise_factors(200, 0.01)
    assert detect(values) == []


def test_a_step_on_a_gentle_slope_is_found():
    values = np.linspace(1.0, 1.03, 100) * step_levels(50, 50, 1.2) * noise_factors(100, 0.01)
    assert detect(values) == [50]


def test_a_slope_offered_as_steps_is_refused():
    slope = np.linspace(0.0, 10.0, 30)
    assert drop_slopes([10, 20], slope, np.ones(30), 9.0) == []
    assert drop_slopes([15], np.repeat([0.0, 10.0], 15), np.ones(30), 9.0) == [15]


def test_levels_have_to_fit_better_than_a_slope_by_as_much_as_is_asked():
    step, noise = np.repeat([0.0, 2.0], 15), np.ones(30)
    better = slope_cost(step, noise, 15, 9.0)
    assert better > 1
    assert drop_slopes([15], step, noise, 9.0, least=better - 0.1) == [15]
    assert drop_slopes([15], step, noise, 9.0, least=better) == []


def test_slow_wander_below_the_noise_is_seldom_a_step():
    rng = np.random.default_rng(0)
    slow = [
        autoregressive_wander(rng, 150, 0.005, correlation=0.95) + rng.normal(0, 0.01, 150) for _ in range(20)
    ]
    assert sum(bool(detect(np.exp(values))) for values in slow) <= 4


def test_white_noise_is_the_same_at_every_lag():
    values = np.random.default_rng(0).normal(0, 1, 2000)
    assert lag_noise(values, 1) == pytest.approx(lag_noise(values, 10), rel=0.1)
    assert largest_lag_noise(values, 10) == pytest.approx(1.0, abs=0.1)


def test_wander_is_more_at_longer_lags():
    values = autoregressive_wander(np.random.default_rng(0), 500, 1.0, correlation=0.95)
    assert largest_lag_noise(values, 10) > 2 * lag_noise(values, 1)


def test_rounding_hides_a_part_of_its_step():
    assert rounding_noise(np.array([3.0, 3.0, 4.0, 6.0])) == pytest.approx(12**-0.5)
    assert rounding_noise(np.full(5, 3.0)) == 0.0


def test_a_judged_slope_is_no_change():
    assert judge_series(plain_series(np.linspace(1.0, 1.5, 60) * noise_factors(60, 0.005))) == []
