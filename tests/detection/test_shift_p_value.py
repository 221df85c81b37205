"""P-values of the newest points: small for a new level, seldom small otherwise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench.detection.null_models import simulate_null
from dashboard.detection.shift_p_value import shift_p_value
from tests.detection.builders import noise_factors, step_levels
from tests.detection.test_properties import extreme_values

CALM = ("white", "autocorrelation .3", "tails t(2)", "tails t(3)", "changing noise", "daily cycle")


@pytest.mark.parametrize("model", CALM)
def test_p_values_are_valid(model):
    found = [shift_p_value(simulate_null(model, seed, n)) for seed in range(60) for n in (30, 60, 120)]
    assert np.mean(np.array(found) <= 0.05) <= 0.08
    assert np.mean(np.array(found) <= 0.01) <= 0.03


def test_the_p_value_of_a_new_level_falls_with_its_points():
    values = step_levels(40, 4, 1.1) * noise_factors(44, 0.01)
    two, three, four = (shift_p_value(values[:n]) for n in (42, 43, 44))
    assert two < 0.05
    assert four < three < two


def test_a_small_step_shows_in_many_points():
    values = step_levels(40, 16, 1.015) * noise_factors(56, 0.01)
    assert shift_p_value(values[:43]) > 0.02
    assert shift_p_value(values) < 0.01


def test_one_outlier_is_none():
    values = noise_factors(50, 0.01, seed=2)
    values[-1] *= 5
    assert shift_p_value(values) > 0.1


@pytest.mark.parametrize("model", ["outliers", "two modes", "rounded"])
def test_outliers_on_one_side_are_no_new_level(model):
    found = [shift_p_value(simulate_null(model, seed, n)) for seed in range(60) for n in (60, 90, 120)]
    assert np.mean(np.array(found) <= 0.01) <= 0.02


def test_it_counts_from_the_present_level():
    values = step_levels(40, 30, 1.5) * noise_factors(70, 0.01)
    assert shift_p_value(values[:60], since=40) > 0.05
    assert shift_p_value(values, since=65) == 1.0


def test_any_finite_values_have_a_p_value():
    rng = np.random.default_rng(23)
    for _ in range(500):
        p = shift_p_value(extreme_values(rng, int(rng.integers(0, 60))))
        assert 0 <= p <= 1


def test_a_value_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="finite"):
        shift_p_value([1.0, math.inf])
