"""The oracle: Page's sums, and a threshold that raises as many false alarms as allowed and not one more."""

from __future__ import annotations

import numpy as np
import pytest

from bench.detection import oracle
from bench.detection.scoring import FIRST
from bench.detection.source_trials import SourceTrials, step_trials
from bench.detection.trials import Trial


def white_source(name: str, noise: float, seed: int) -> SourceTrials:
    """A source of white noise, with steps of 3, 5 and 10 % up and down in each stretch."""
    rng = np.random.default_rng(seed)
    source = SourceTrials(name)
    for _ in range(4):
        values = rng.normal(0, noise, 120)
        source.change_free.append(Trial(np.exp(values).tolist(), source=name))
        source.steps += step_trials(values, rng, name)
    return source


def test_sums_begin_anew_wherever_nothing_speaks_for_the_step() -> None:
    values = np.random.default_rng(1).normal(0, 0.01, 50)
    values[30:] += 0.03
    sums, expected = oracle.page_sums(values, level=0.0, noise=0.01, step=0.03), 0.0
    spread = 0.01 / 1.4826
    for value, reached in zip(values, sums, strict=True):
        ratio = np.log((1 + (value / spread) ** 2) / (1 + ((value - 0.03) / spread) ** 2))
        expected = max(0.0, expected + ratio)
        assert reached == pytest.approx(expected)
    assert sums[-1] > sums[:30].max()
    up, down = (oracle.page_sums(sign * values, 0.0, 0.01, sign * 0.03) for sign in (1, -1))
    assert np.allclose(up, down)


def test_as_many_false_alarms_as_allowed_and_steps_of_both_directions_found() -> None:
    sources = [white_source("calm", 0.01, 2), white_source("loud", 0.3, 3)]
    threshold = oracle.alarm_threshold(sources)
    looks = 6 * 4 * (120 - FIRST)  # every size and direction at each point

    def rate(at_least: float) -> float:
        """Of peaks above, per 1,000 points, the mean of both sources."""
        peaks = [[p for t in s.change_free for p in oracle.quiet_peaks(t)] for s in sources]
        return sum(1000 * sum(p > at_least for p in each) / looks for each in peaks) / 2

    assert rate(threshold) <= oracle.FALSE_ALARMS < rate(np.nextafter(threshold, 0))
    recalls = oracle.oracle_recalls(sources)
    assert recalls["calm"] == (1.0, 1.0, 1.0)
    assert recalls["loud"][0] < 0.5
