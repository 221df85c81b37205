"""Series for the tests, from plain numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dashboard.detection.types import Better, Kind, Point, Series


def plain_series(
    values: Sequence[float], kind: Kind = "time", better: Better = "lower", exact: bool = False
) -> Series:
    """A series without samples."""
    return Series(points=[Point(float(v)) for v in values], better=better, kind=kind, exact=exact)


def noise_factors(n: int, sigma: float, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Factors around 1 (n,), log-normal."""
    return np.exp(np.random.default_rng(seed).normal(0, sigma, n))


def step_levels(before: int, after: int, ratio: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """A level of 1 for so many points, then one of `ratio`."""
    return np.concatenate([np.ones(before), np.full(after, ratio)])
