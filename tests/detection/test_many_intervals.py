"""Of many intervals few are differences by chance, and a planted one is found among them."""

from __future__ import annotations

import math

import numpy as np

from dashboard.detection import Interval, compare_differences, compare_samples, find_discoveries


def sample_interval(generator: np.random.Generator, effect: float) -> Interval:
    """Of five values against five, whose true difference this is, in standard deviations of one value."""
    old, new = generator.normal(0, 0.01, 5), generator.normal(effect * 0.01, 0.01, 5)
    found = compare_samples(np.exp(old).tolist(), np.exp(new).tolist())
    assert found.low is not None
    assert found.high is not None
    return Interval(math.log(found.ratio), math.log(found.low), math.log(found.high), 10)


def test_what_differs_by_chance_is_rarely_called_different() -> None:
    generator = np.random.default_rng(3)
    false = [any(find_discoveries([sample_interval(generator, 0) for _ in range(100)])) for _ in range(60)]
    alone = [sample_interval(generator, 0) for _ in range(400)]
    # Each interval by itself leaves out no difference in one of twenty comparisons or more.
    assert np.mean([interval.low > 0 or interval.high < 0 for interval in alone]) > 0.02
    assert np.mean(false) < 0.25


def test_planted_differences_are_found_among_many() -> None:
    generator = np.random.default_rng(4)
    told = find_discoveries([sample_interval(generator, effect) for effect in (*[20] * 5, *[0] * 95)])
    assert all(told[:5])
    assert sum(told[5:]) <= 1


def test_what_has_no_width_differs_or_not() -> None:
    assert find_discoveries([Interval(0.0, 0.0, 0.0, 10), Interval(0.1, 0.1, 0.1, 10)]) == [False, True]
    assert find_discoveries([]) == []


def test_values_without_ratios_have_a_difference() -> None:
    found = compare_differences([-1.0, 0.0, 1.0, 0.5], [10.0, 11.0, 9.0, 10.5], between=0.5)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 10 < found.high
    assert found.verdict == "higher"
    assert compare_differences([0.0], [5.0]).verdict == "?"
