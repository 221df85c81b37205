"""The smallest step that an experiment would prove."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from dashboard.detection.paired_parts import decide_step
from dashboard.detection.paired_steps import LARGEST_STEP, ComparedSteps, estimate_by_steps
from dashboard.detection.pairs import ERROR, estimate_share, step_verdict
from dashboard.detection.provable_effect import (
    StepSpread,
    measure_step_spread,
    provable_by_either,
    provable_effect,
)
from dashboard.detection.smallest_effect import POWER


def test_pairs_prove_the_smallest_step_that_is_told() -> None:
    deviation, count = 0.03, 24
    told = provable_effect(deviation, count)
    found = {1.0: 0, 1 / 3: 0}
    for part in found:
        for seed in range(100):
            drawn = random.Random(seed)  # noqa: S311
            shares = [
                (math.log1p(part * told) + drawn.gauss(0, deviation)) / math.log1p(told) for _ in range(count)
            ]
            estimate = estimate_share([0.0] * count, shares, slowed=False)
            found[part] += step_verdict(estimate, 0.0) == "confirmed"
    assert abs(found[1.0] / 100 - POWER) < 0.12
    assert found[1 / 3] < 30


def test_no_pairs_prove_nothing() -> None:
    assert provable_effect(0.01, 0) == provable_effect(0.01, 3) == math.inf
    assert provable_by_either(0.01, StepSpread(40, 0.003, 0.0), 0) == math.inf


@pytest.mark.parametrize(
    ("of_means", "of_steps", "count"), [(0.05, 0.015, 60), (0.03, 0.012, 24), (0.05, 0.003, 20)]
)
def test_single_steps_prove_the_smallest_step_that_is_told(
    of_means: float, of_steps: float, count: int
) -> None:
    """Beside the means, which have to agree: as an experiment is decided after so many pairs."""
    kinds_error = of_steps / 20
    told = provable_by_either(of_means, StepSpread(count, of_steps, kinds_error), count)
    assert told < 0.6 * provable_effect(of_means, count)
    found = {1.0: 0, 1 / 3: 0}
    for part in found:
        for seed in range(200):
            drawn, moved = np.random.default_rng(seed), math.log1p(part * told)
            compared = ComparedSteps(
                drawn.normal(moved, of_steps, count), drawn.normal(0, kinds_error), kinds_error
            )
            means = drawn.normal(moved, of_means, count) / math.log1p(told)
            whole = estimate_share([0.0] * count, means.tolist(), error=ERROR / 2, slowed=False)
            first = [True, False] * (count // 2)
            steps = estimate_by_steps(compared, first, math.log1p(told), 0.003, ERROR / 2)
            found[part] += decide_step(whole, steps, None, 0.0) == "confirmed"
    assert abs(found[1.0] / 200 - POWER) < 0.12
    assert found[1 / 3] < 60


def test_large_steps_are_proved_by_means() -> None:
    wild = StepSpread(20, 0.2, 0.0)
    assert provable_by_either(0.2, wild, 20) == provable_effect(0.2, 20, ERROR / 2) > LARGEST_STEP


def test_the_spread_of_steps_is_that_which_is_weighed() -> None:
    """Without who began, and one that is far off as a bounded one."""
    drawn, first = np.random.default_rng(3), [True, False] * 30
    typical = drawn.normal(0.0, 0.01, 60) + np.where(first, 0.02, -0.02)
    typical[7] = 2.0
    found = measure_step_spread(typical.tolist(), first, 0.001, 0.003)
    assert found is not None
    assert 0.005 < found.deviation < 0.025
    assert measure_step_spread([0.0] * 60, first, 0.001, 0.003) == StepSpread(60, 0.003, 0.001)
    assert measure_step_spread([0.0] * 5, [True] * 5, 0.001, 0.003) is None
