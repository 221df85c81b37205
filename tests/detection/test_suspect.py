"""Suspicion comes with the first far point; an alarm waits until it is sure."""

from __future__ import annotations

import numpy as np

from dashboard.detection import detect, suspect
from tests.detection.builders import noise_factors, step_levels


def test_a_far_point_is_suspected_at_once_and_alarmed_with_the_fourth():
    values = step_levels(40, 10, 1.2) * noise_factors(50, 0.01)
    assert suspect(values[:41]) == [40]
    assert detect(values[:43]) == []
    assert detect(values[:44]) == [40]


def test_a_suspicion_stays_at_its_place():
    values = step_levels(40, 10, 1.2) * noise_factors(50, 0.01)
    assert {tuple(suspect(values[:n])) for n in range(41, 51)} == {(40,)}


def test_a_series_that_throws_outliers_sets_its_own_mark():
    values = noise_factors(60, 0.01)
    values[::12] *= 1.3
    values[-1] = 1.3
    assert suspect(values) == []


def test_noise_alone_is_seldom_suspected():
    found = sum(bool(suspect(noise_factors(40, 0.03, seed)[:n])) for seed in range(10) for n in range(20, 41))
    assert found <= 4


def test_an_improvement_is_suspected_as_well():
    assert suspect(step_levels(30, 1, 0.8) * noise_factors(31, 0.01)) == [30]


def test_five_wild_points_are_a_level():
    values = np.concatenate([noise_factors(30, 0.01), np.full(5, 3.0)])
    assert suspect(values) == [30]
