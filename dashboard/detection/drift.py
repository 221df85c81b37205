"""Steps distinguished from slopes, which look like steps to a model that knows levels only."""

from __future__ import annotations

import numpy as np

from dashboard.detection.levels import WINDOW_POINTS, neighbouring_levels
from dashboard.detection.medians import fast_median
from dashboard.detection.segmentation import Floats

REFITS = 5


def drop_slopes(
    starts: list[int], values: Floats, noise: Floats, cap: float, least: float = 0.0
) -> list[int]:
    """Those starts around which two levels fit values (n,) of this noise (n,) better than one straight line.

    Both fits have the bounded loss of the segmentation and about as many parameters. The levels' place was
    chosen as well, so they may have to cost less by `least`.
    """
    kept = []
    for a, b, c in neighbouring_levels(starts, len(values)):
        near = slice(max(a, b - WINDOW_POINTS), min(c, b + WINDOW_POINTS))
        if slope_cost(values[near], noise[near], b - near.start, cap) > least:
            kept.append(b)
    return kept


def slope_cost(values: Floats, noise: Floats, at: int, cap: float) -> float:
    """What a line through values (n,) of this noise (n,) costs more than two levels that meet before `at`."""
    sides = (slice(0, at), slice(at, None))
    two_levels = sum(bounded_fit_cost(values[side], noise[side], cap, slope=False) for side in sides)
    return bounded_fit_cost(values, noise, cap, slope=True) - two_levels


def bounded_fit_cost(values: Floats, noise: Floats, cap: float, slope: bool) -> float:
    """The least sum of min(z², cap) over levels, or over lines; least squares on the points inside the cap.

    The start is the median of the values, or the line through the medians of their outer thirds.
    """
    x = np.arange(len(values), dtype=np.float64) - (len(values) - 1) / 2
    rise = outer_slope(values) if slope else 0.0
    level = fast_median(values - rise * x)
    best, before = np.inf, None
    for _ in range(REFITS):
        losses = ((values - level - rise * x) / noise) ** 2
        best = min(best, float(np.minimum(losses, cap).sum()))
        inside = losses < cap
        # Of the same points the fit is the same again.
        if np.count_nonzero(inside) < 2 or (before is not None and (inside == before).all()):
            break
        level, rise = least_squares(x[inside], values[inside], slope)
        before = inside
    return best


def outer_slope(values: Floats) -> float:
    """The slope between the medians of the first and the last third."""
    third = max(len(values) // 3, 1)
    return (fast_median(values[-third:]) - fast_median(values[:third])) / max(len(values) - third, 1)


def least_squares(x: Floats, y: Floats, slope: bool) -> tuple[float, float]:
    """Level at x = 0 and rise of the best line, or the mean and no rise."""
    if not slope:
        return float(y.mean()), 0.0
    centred = x - x.mean()
    rise = float((centred * y).sum() / (centred**2).sum())
    return float(y.mean()) - rise * float(x.mean()), rise
