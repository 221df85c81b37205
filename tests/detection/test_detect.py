"""Plain values with known answers, and nasty ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dashboard.detection import detect
from tests.detection.builders import noise_factors, step_levels


def test_one_clear_step():
    assert detect(step_levels(50, 50, 1.1) * noise_factors(100, 0.01)) == [50]


def test_several_steps():
    values = np.repeat([1.0, 1.1, 0.9, 1.2], 40) * noise_factors(160, 0.01)
    assert detect(values) == [40, 80, 120]


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_is_silent(seed):
    assert detect(noise_factors(200, 0.03, seed)) == []


def test_a_wild_outlier_is_silent():
    values = noise_factors(100, 0.01)
    values[60] *= 1000
    assert detect(values) == []


@pytest.mark.parametrize("tau", [10, 11, 12, 13, 14, 15, 16])
def test_a_step_in_the_baseline_is_put_where_it_is(tau):
    values = step_levels(tau, 60 - tau, 1.1) * noise_factors(60, 0.01, seed=tau)
    assert detect(values) == [tau]


def test_constant_series_are_silent():
    assert detect([7.0] * 100) == []
    assert detect([0.0] * 100) == []


def test_a_step_between_constants_is_found():
    assert detect(step_levels(20, 20, 1.01)) == [20]


@pytest.mark.parametrize("n", range(11))
def test_tiny_series_do_not_crash(n):
    found = detect(noise_factors(n, 0.5))
    assert all(0 < i < n for i in found)


def test_negative_values():
    assert detect(-5.0 * step_levels(40, 40, 2.0) * noise_factors(80, 0.05)) == [40]


def test_values_of_both_signs():
    values = np.random.default_rng(0).normal(0, 1, 80) + np.repeat([0.0, 20.0], 40)
    assert detect(values) == [40]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_values_that_are_not_finite_are_refused(value):
    with pytest.raises(ValueError, match="finite"):
        detect([1.0, value])
