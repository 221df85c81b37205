"""The smallest step that a series would show."""

from __future__ import annotations

import math

import pytest

from bench.detection.power import minimum_detectable_effect
from dashboard.detection.relevance import EFFECT_FLOORS
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
    assert minimum_detectable_effect(plain, 4) < 0.15
