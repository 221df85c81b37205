"""Slopes and wander aren't steps."""

from __future__ import annotations

import numpy as np
import pytest

from dashboard.detection import detect, judge
from dashboard.detection.drift import steps_not_slopes
from dashboard.detection.noise import at_lag, of_rounding, with_wander
from dashboard.detection.simulation import wander
from tests.detection.builders import noise, series, step


def test_a_long_slope_has_no_step():
    values = np.linspace(1.0, 2.0, 200) * noise(200, 0.01)
    assert detect(values) == []


def test_a_step_on_a_gentle_slope_is_found():
    values = np.linspace(1.0, 1.03, 100) * step(50, 50, 1.2) * noise(100, 0.01)
    assert detect(values) == [50]


def test_a_slope_offered_as_steps_is_refused():
    slope = np.linspace(0.0, 10.0, 30)
    assert steps_not_slopes([10, 20], slope, np.ones(30), 9.0) == []
    assert steps_not_slopes([15], np.repeat([0.0, 10.0], 15), np.ones(30), 9.0) == [15]


def test_slow_wander_below_the_noise_is_seldom_a_step():
    rng = np.random.default_rng(0)
    slow = [wander(rng, 150, 0.005, memory=0.95) + rng.normal(0, 0.01, 150) for _ in range(20)]
    assert sum(bool(detect(np.exp(values))) for values in slow) <= 4


def test_white_noise_is_the_same_at_every_lag():
    values = np.random.default_rng(0).normal(0, 1, 2000)
    assert at_lag(values, 1) == pytest.approx(at_lag(values, 10), rel=0.1)
    assert with_wander(values, 10) == pytest.approx(1.0, abs=0.1)


def test_wander_is_more_at_longer_lags():
    values = wander(np.random.default_rng(0), 500, 1.0, memory=0.95)
    assert with_wander(values, 10) > 2 * at_lag(values, 1)


def test_rounding_hides_a_part_of_its_step():
    assert of_rounding(np.array([3.0, 3.0, 4.0, 6.0])) == pytest.approx(12**-0.5)
    assert of_rounding(np.full(5, 3.0)) == 0.0


def test_a_judged_slope_is_no_change():
    assert judge(series(np.linspace(1.0, 1.5, 60) * noise(60, 0.005))) == []
