"""Two groups of samples: a ratio, an interval, and a verdict."""

from __future__ import annotations

import numpy as np
import pytest

from dashboard.detection import compare_samples
from dashboard.detection.doubts import TOO_FEW_SAMPLES
from tests.detection.builders import noise_factors


def test_a_difference_has_a_ratio_and_an_interval():
    result = compare_samples(noise_factors(10, 0.02), 1.3 * noise_factors(10, 0.02, seed=1))
    assert result.verdict == "higher"
    assert result.low < 1.3 < result.high


def test_no_difference_is_a_tilde():
    assert compare_samples(noise_factors(10, 0.05), noise_factors(10, 0.05, seed=1)).verdict == "~"


def test_groups_swap_to_the_reciprocal():
    a, b = noise_factors(8, 0.02), 1.2 * noise_factors(8, 0.02, seed=1)
    assert compare_samples(a, b).ratio == pytest.approx(1 / compare_samples(b, a).ratio)


def test_three_samples_are_too_few_to_tell():
    result = compare_samples([1.0, 1.1, 1.2], [2.0, 2.1, 2.2])
    assert (result.verdict, result.low) == ("?", None)
    assert [doubt.code for doubt in result.doubts] == [TOO_FEW_SAMPLES]


def test_noise_between_runs_widens_the_interval():
    a, b = noise_factors(5, 0.01), 1.03 * noise_factors(5, 0.01, seed=3)
    assert compare_samples(a, b).verdict == "higher"
    assert compare_samples(a, b, between=0.05).verdict == "~"


def test_the_interval_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(5)
    pairs = [(np.exp(rng.normal(0, 0.1, 6)), np.exp(rng.normal(0, 0.1, 6))) for _ in range(500)]
    quiet = sum(compare_samples(a, b).verdict == "~" for a, b in pairs)
    assert 0.92 <= quiet / 500 <= 0.99


def test_an_empty_group_is_refused():
    with pytest.raises(ValueError, match="at least one sample"):
        compare_samples([], [1.0])
