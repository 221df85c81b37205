"""How much a series moves when nothing changes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dashboard.detection.medians import fast_median, fast_quantile
from dashboard.detection.repetitions import Repetitions
from dashboard.detection.segmentation import Floats

MAD_TO_SIGMA = 1.4826  # of a Gaussian
LEAST_NOISE = 1e-9  # on the judging scale: a constant series has none, and any step in it is one
MEDIAN_EFFICIENCY = 1.2533  # the standard error of a median over that of a mean, large samples
# Steps and outliers inflate the upper half of the differences between neighbours; the lower still tells.
QUIET_QUANTILE = 0.4
QUIET_FACTOR = 0.5244  # that quantile of |z|
EXPECTED_POINTS = 16
# Wander is looked for at lags up to this many points, and up to this part of the history: in twenty points
# there are pairs enough, without a step between them, to tell it from the noise.
WANDER_REACH = 10
WANDER_SPAN = 20
POOLED_WEIGHT = 4.0  # degrees of freedom that a point's own spread borrows from all the others


def robust_deviation(values: Floats) -> float:
    """The robust standard deviation of values (n,): 1.4826 times the median absolute deviation."""
    return MAD_TO_SIGMA * fast_median(np.abs(values - fast_median(values)))


def neighbour_noise(values: Floats) -> float:
    """The noise of a point, from the differences of neighbours (n - 1), of which some may be steps."""
    if len(values) < 2:
        return 0.0
    differences = np.abs(values[1:] - values[:-1])
    return float(fast_quantile(differences, QUIET_QUANTILE) / QUIET_FACTOR / np.sqrt(2))


def lag_noise(values: Floats, lag: int) -> float:
    """The noise that points `lag` apart show, robustly: 1.4826 / sqrt(2) of their median distance."""
    return float(MAD_TO_SIGMA / np.sqrt(2) * fast_median(np.abs(values[lag:] - values[:-lag])))


def largest_lag_noise(values: Floats, reach: int) -> float:
    """The largest noise at any lag up to `reach` (a robust variogram).

    White noise shows the same at each lag. A series that wanders shows more at longer ones, and a step is
    only worth an alarm against what the series does by itself over that many points.
    """
    lags = range(1, min(reach, len(values) // 2 - 1) + 1)
    return max((lag_noise(values, lag) for lag in lags), default=0.0)


def rounding_noise(values: Floats) -> float:
    """The noise that rounding hides: the smallest gap between values over sqrt(12), 0 if all are equal."""
    gaps = np.diff(np.unique(values))
    return float(gaps.min() / np.sqrt(12)) if len(gaps) else 0.0


def sample_variances(samples: Repetitions) -> Floats:
    """The variance of a sample in each point (n,), shrunk towards the one that all points share."""
    weight = np.maximum(samples.counts - 1.0, 0.0)
    if not weight.any():
        return np.zeros(len(weight))
    own = np.zeros(len(weight))
    for points, rows in samples.alike():
        own[points] = np.var(rows, axis=1, ddof=1)
    pooled = fast_median(own[weight > 0])
    return np.asarray((POOLED_WEIGHT * pooled + weight * own) / (POOLED_WEIGHT + weight))


def variances_of_values(samples: Repetitions, variances: Floats, error: Callable[[Floats], Floats]) -> Floats:
    """What repetitions of such `variances` (n,) leave open of each judged value (n,), itself a variance."""
    return np.asarray(variances * error(np.maximum(samples.counts, 1.0)) ** 2)


def error_of_median(counts: Floats) -> Floats:
    """The standard error of the median of so many Gaussian values (n,), in their standard deviations."""
    return np.asarray(np.where(counts > 2, MEDIAN_EFFICIENCY, 1.0) / np.sqrt(counts))


def error_of_mean(counts: Floats) -> Floats:
    """The same of the mean of so many."""
    return np.asarray(1 / np.sqrt(counts))


def error_of_best(counts: Floats) -> Floats:
    """The same of the smallest (or largest) of so many: 0.84, 0.76, 0.67 for 2, 3, 5."""
    return np.asarray(counts**-0.25)


def point_noise(
    values: Floats, samples: Repetitions, error: Callable[[Floats], Floats], least: float
) -> Floats:
    """The noise of each point (n,): what its repetitions leave open, and what runs differ by.

    `error` is the standard error of the judged value, by the number of repetitions. A short history's own
    differences tell the noise badly. Until they can, an expectation has weight, as of EXPECTED_POINTS: runs
    differ by as much as repetitions inside one. A long history shows its wander too. Never below `least`.
    """
    if not len(values):
        return np.zeros(0)
    variances = sample_variances(samples)
    within = variances_of_values(samples, variances, error)
    typical = fast_median(within)
    wander = largest_lag_noise(values, min(len(values) // WANDER_SPAN, WANDER_REACH))
    seen = max(neighbour_noise(values), wander, least) ** 2
    expected = max(typical + fast_median(variances), least**2)
    trust = len(values) / (len(values) + EXPECTED_POINTS)
    total = seen**trust * expected ** (1 - trust) if variances.any() else seen
    return np.maximum(np.sqrt(max(total - typical, 0.0) + within), least)
