"""Histories that are segmented together have the levels that each has by itself."""

from __future__ import annotations

import numpy as np
import pytest

from dashboard.detection.judgement import loss_for
from dashboard.detection.medians import fast_median, fast_quantile
from dashboard.detection.segmentation import Loss, segment_levels
from dashboard.detection.segmentation_batch import Segmented, segment_all


def draw_history(random: np.random.Generator, points: int, noise: float) -> Segmented:
    """Levels that differ by a few noises, with outliers, each point with a noise of its own."""
    levels = np.repeat(random.normal(0, 6 * noise, 4), points // 4 + 1)[:points]
    values = levels + noise * random.standard_t(3, points)
    known = [int(place) for place in random.integers(1, points, 2)] if points > 2 else []
    return Segmented(values, noise * random.uniform(0.8, 1.3, points), loss_for(points), known)


@pytest.mark.parametrize("seed", range(5))
def test_together_each_has_its_own_levels(seed: int) -> None:
    random = np.random.default_rng(seed)
    histories = [
        draw_history(random, int(points), float(noise))
        for points, noise in zip(random.integers(1, 300, 12), random.uniform(0.001, 0.3, 12), strict=True)
    ]
    alone = [segment_levels(each.values, each.noise, each.loss, each.known) for each in histories]
    assert segment_all(histories) == alone
    assert any(alone)


def test_losses_of_several_caps_are_refused() -> None:
    values = np.arange(5.0)
    histories = [Segmented(values, values + 1, Loss(cap, 11.0)) for cap in (9.0, 8.0)]
    with pytest.raises(ValueError, match="one cap"):
        segment_all(histories)


@pytest.mark.parametrize("count", [1, 2, 5, 40, 401])
def test_the_median_is_that_of_numpy(count: int) -> None:
    values = np.random.default_rng(count).standard_cauchy(count)
    assert fast_median(values) == np.median(values)
    assert fast_median(values[::-2]) == np.median(values[::-2])


@pytest.mark.parametrize("count", [1, 2, 5, 40, 401])
@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.9, 1.0])
def test_the_quantile_is_that_of_numpy(count: int, share: float) -> None:
    values = np.random.default_rng(count).standard_cauchy(count)
    assert fast_quantile(values, share) == np.quantile(values, share)
