"""P-values of the newest points: small for a new level, seldom small otherwise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dashboard.detection.nuisances import series
from dashboard.detection.surprise import surprise
from tests.detection.builders import noise, step
from tests.detection.test_properties import nasty

CALM = ("white", "memory .3", "tails t(2)", "tails t(3)", "changing noise", "day and night")


@pytest.mark.parametrize("family", CALM)
def test_p_values_keep_their_word(family):
    found = [surprise(series(family, seed, n)) for seed in range(60) for n in (30, 60, 120)]
    assert np.mean(np.array(found) <= 0.05) <= 0.08
    assert np.mean(np.array(found) <= 0.01) <= 0.03


def test_a_new_level_is_a_surprise_that_grows():
    values = step(40, 4, 1.1) * noise(44, 0.01)
    two, three, four = (surprise(values[:n]) for n in (42, 43, 44))
    assert two < 0.05
    assert four < three < two


def test_a_small_step_shows_in_many_points():
    values = step(40, 16, 1.015) * noise(56, 0.01)
    assert surprise(values[:43]) > 0.02
    assert surprise(values) < 0.01


def test_one_outlier_is_none():
    values = noise(50, 0.01, seed=2)
    values[-1] *= 5
    assert surprise(values) > 0.1


@pytest.mark.parametrize("family", ["outliers", "two modes", "rounded"])
def test_outliers_on_one_side_are_no_new_level(family):
    found = [surprise(series(family, seed, n)) for seed in range(60) for n in (60, 90, 120)]
    assert np.mean(np.array(found) <= 0.01) <= 0.02


def test_it_counts_from_the_present_level():
    values = step(40, 30, 1.5) * noise(70, 0.01)
    assert surprise(values[:60], since=40) > 0.05
    assert surprise(values, since=65) == 1.0


def test_any_finite_values_have_a_p_value():
    rng = np.random.default_rng(23)
    for _ in range(500):
        p = surprise(nasty(rng, int(rng.integers(0, 60))))
        assert 0 <= p <= 1


def test_a_value_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="finite"):
        surprise([1.0, math.inf])
