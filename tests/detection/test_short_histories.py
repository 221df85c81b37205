"""Steps of histories of fewer than thirty points."""

from __future__ import annotations

import numpy as np
import pytest

from bench.detection.null_models import NULL_MODELS, simulate_null
from dashboard.detection import detect
from dashboard.detection.rules import CLEAR, CLEAR_AND_LASTING
from dashboard.detection.short_histories import SHORT_HISTORY, clear_starts
from tests.detection.builders import noise_factors, step_levels


@pytest.mark.parametrize("ratio", [2.0, 0.5])
@pytest.mark.parametrize("before", [6, 12, 20])
def test_a_doubled_time_is_known_after_four_points(before, ratio):
    values = step_levels(before, 9, ratio) * noise_factors(before + 9, 0.03, seed=before)
    found = [detect(values[:n]) for n in range(before + 1, before + 10)]
    assert found == [[]] * 3 + [[before]] * 6


def test_the_fewer_points_the_higher_a_step_has_to_be():
    values = step_levels(8, 20, 1.2) * noise_factors(28, 0.03)
    found = [detect(values[:n]) for n in range(1, 29)]
    known = found.index([8])
    assert CLEAR.before + CLEAR.after < known < 20
    assert found == [[]] * known + [[8]] * (28 - known)


def test_a_second_step_takes_nothing_from_the_first():
    values = np.repeat([1.0, 1.5, 1.0], [9, 10, 10]) * noise_factors(29, 0.02)
    assert [detect(values[:n]) for n in range(13, 30)] == [[9]] * 10 + [[9, 19]] * 7


@pytest.mark.parametrize("noisy", [slice(0, 12), slice(12, 24)])
def test_a_step_stands_out_from_its_noisier_level(noisy):
    noise = 0.02 * np.random.default_rng(1).normal(size=24)
    assert detect(np.exp(noise + 0.3 * (np.arange(24) >= 12))) == [12]
    noise[noisy] *= 12
    assert detect(np.exp(noise + 0.3 * (np.arange(24) >= 12))) == []


@pytest.mark.parametrize("values", [np.linspace(1, 3, 29), np.geomspace(9, 1, 29)])
def test_a_slope_is_no_step(values):
    assert detect(values * noise_factors(29, 0.01)) == []


def test_rounded_values_may_lie_beside_an_edge():
    values = step_levels(8, 5, 13 / 12) * 12
    assert detect(values) == []
    assert detect(step_levels(8, 14, 13 / 12) * 12) == [8]


def test_what_ends_within_ten_points_is_forgotten_in_a_longer_history():
    values = np.repeat([1.0, 1.5, 1.0], [7, 6, 40]) * noise_factors(53, 0.02)
    assert detect(values[:SHORT_HISTORY]) == [7, 13]
    assert clear_starts(values[:SHORT_HISTORY], CLEAR_AND_LASTING) == detect(values) == []


@pytest.mark.parametrize("model", NULL_MODELS)
def test_first_points_without_a_step_raise_no_alarm(model):
    alarms = [seed for seed in range(10) if clear_starts(simulate_null(model, seed, SHORT_HISTORY))]
    assert len(alarms) <= 1
