"""Autocorrelation: points that are like their neighbours say less of a level than independent ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dashboard.detection.levels import (
    WINDOW_POINTS,
    drop_weakest,
    neighbouring_levels,
    residuals_of_levels,
    robust_level,
)
from dashboard.detection.medians import fast_median
from dashboard.detection.noise import MAD_TO_SIGMA
from dashboard.detection.segmentation import Floats

LAGS = 10  # points
SLOW = 0.9  # of a slow wander that remains from point to point
STRONGEST = 0.95
CLIP = 2.5  # noises: an outlier says nothing about its neighbours
# How far a correlation must stand out, in standard errors of one lag and of the average over all lags.
DOUBT_OF_LAG, DOUBT_OF_WANDER = 1.5, 2.0


@dataclass(frozen=True, slots=True)
class Autocorrelation:
    """What of a point's deviation the next ones share: `quick` of it, decaying by itself; `slow`, for long.

    Either may be the better description, of an autoregressive series or of a slow wander under noise.
    """

    quick: float = 0.0
    slow: float = 0.0

    def inflation(self, points: int) -> float:
        """The variance of a mean of so many points, over that of independent ones."""
        lag, share = lag_shares(points)
        quick = float((share * self.quick**lag).sum()) if self.quick else 0.0
        return 1 + 2 * max(quick, self.slow * slow_sum(points) if self.slow else 0.0)

    def variance(self, points: int) -> float:
        """The variance of a mean of so many points, in variances of one."""
        return self.inflation(points) / points


@lru_cache(maxsize=512)
def lag_shares(points: int) -> tuple[npt.NDArray[np.int_], Floats]:
    """The lags (n,) of so many points, and which share of their pairs each has (n,)."""
    lag = np.arange(1, points)
    return lag, 1 - lag / points


@lru_cache(maxsize=512)
def slow_sum(points: int) -> float:
    """What of a slow wander the pairs of so many points share."""
    lag, share = lag_shares(points)
    return float((share * SLOW**lag).sum())


def estimate_autocorrelation(values: Floats, starts: list[int], doubt: float = 1.0) -> Autocorrelation:
    """That of values (n,) around the levels that begin at `starts`; none where it may be chance.

    With a `doubt` of 0 it is what it looks like.
    """
    residuals = residuals_of_levels(values, starts)
    spread = MAD_TO_SIGMA * fast_median(np.abs(residuals))
    lags = min(LAGS, len(values) // 4)
    if spread == 0 or not lags:
        return Autocorrelation()
    residuals = np.clip(residuals, -CLIP * spread, CLIP * spread) / spread
    residuals = residuals - residuals.mean()
    # Each level that is taken away takes some of the correlation with it.
    taken = (len(starts) + 1) / len(residuals)
    products = [float((residuals[k:] * residuals[:-k]).sum()) for k in range(1, lags + 1)]
    correlations = np.array(products) / float((residuals**2).sum()) + taken
    weights = SLOW ** np.arange(1, lags + 1)
    error = doubt / math.sqrt(len(residuals))
    quick = correlations[0] - DOUBT_OF_LAG * error
    slow = (correlations * weights).sum() / (weights**2).sum() - DOUBT_OF_WANDER * error / math.sqrt(lags)
    return Autocorrelation(*(min(max(float(share), 0.0), STRONGEST) for share in (quick, slow)))


def step_height(before: Floats, after: Floats, noise: float) -> float:
    """How far levels of points (m,) and (n,) are apart, in noises, by those next to the step."""
    return (
        abs(robust_level(after[:WINDOW_POINTS], noise) - robust_level(before[-WINDOW_POINTS:], noise)) / noise
    )


def median_distance(before: Floats, after: Floats) -> float:
    """How far the medians of points (m,) and (n,) are apart, by those next to the step."""
    return fast_median(after[:WINDOW_POINTS]) - fast_median(before[-WINDOW_POINTS:])


def step_evidence(height: float, before: int, after: int, correlation: Autocorrelation) -> float:
    """The squared height, in noises, over the variance that chance gives it, by the points of both levels."""
    return height**2 / sum(correlation.variance(min(points, WINDOW_POINTS)) for points in (before, after))


def learn_autocorrelation(values: Floats, noise: float, starts: list[int], least: float) -> Autocorrelation:
    """That of values (n,) around those `starts` that have evidence enough against it.

    A wander that was cut into levels has lost its correlation to them: the weakest start goes first, and what
    it held apart is looked at again. Levels are medians here, as they are for the residuals.
    """
    starts = list(starts)
    while True:
        correlation = estimate_autocorrelation(values, starts)
        evidence = [
            step_evidence(median_distance(values[a:b], values[b:c]) / noise, b - a, c - b, correlation)
            for a, b, c in neighbouring_levels(starts, len(values))
        ]
        if not evidence or min(evidence) >= least:
            return correlation
        starts.pop(int(np.argmin(evidence)))


def drop_weak_starts(
    starts: Sequence[int],
    values: Floats,
    noise: float,
    correlation: Autocorrelation,
    least: float,
    parts: Mapping[int, float],
) -> list[int]:
    """Those starts with at least so much evidence, or the part of it asked there: the weakest goes first."""

    def evidence(a: int, b: int, c: int) -> float:
        height = step_height(values[a:b], values[b:c], noise)
        return step_evidence(height, b - a, c - b, correlation) / parts.get(b, 1.0)

    return drop_weakest(starts, len(values), evidence, least)
