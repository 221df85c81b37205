"""Steps that only a long level shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dashboard.detection import detect
from dashboard.detection.history_fit import find_starts, scale_history
from dashboard.detection.rules import ALARM
from dashboard.detection.segmentation import KNOWN_COST
from dashboard.detection.slow_starts import drop_slow_starts, saved_cost
from tests.detection.builders import noise_factors, step_levels

NOISE = np.random.default_rng(4).normal(size=200)


def noisy_step(height):
    """A step of so many noises after 60 of 200 points."""
    return NOISE + height * (np.arange(200) >= 60)


def test_a_small_step_is_refused_though_all_its_points_would_pay():
    values = np.exp(0.02 * noisy_step(1.25))
    assert find_starts(scale_history(values, ALARM.reach), replace(ALARM, paid_within=0)) == [60]
    assert detect(values) == []


@pytest.mark.parametrize("height", [1.0, 2.0])
def test_what_was_refused_once_stays_so(height):
    values = noisy_step(height)
    assert len({tuple(drop_slow_starts([60], values[:n], 1.0, ALARM, {})) for n in range(90, 201)}) == 1


def test_a_step_whose_points_are_still_few_is_left_to_the_levels_cost():
    assert drop_slow_starts([60], noisy_step(1.0)[:89], 1.0, ALARM, {}) == [60]
    assert drop_slow_starts([60], noisy_step(1.0)[:90], 1.0, ALARM, {}) == []


def test_calm_points_that_come_later_do_not_make_a_step_sure():
    learnt = 0.9  # of a noise of 1
    assert saved_cost(noisy_step(1.25)[:90] / learnt, 60, ALARM.cap) > ALARM.loss(90).penalty
    assert drop_slow_starts([60], noisy_step(1.25), learnt, ALARM, {}) == []


def test_a_known_start_needs_less():
    assert drop_slow_starts([60], noisy_step(1.25), 1.0, ALARM, {}) == []
    assert drop_slow_starts([60], noisy_step(1.25), 1.0, ALARM, {60: KNOWN_COST}) == [60]


def test_two_levels_save_what_one_pays_for_their_distance():
    assert saved_cost(np.repeat([-1.0, 1.0], 20), 20, ALARM.cap) == pytest.approx(40.0)


def test_a_large_step_stays_however_long_its_level():
    assert detect(step_levels(60, 900, 1.05) * noise_factors(960, 0.02)) == [60]
