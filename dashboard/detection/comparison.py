"""`compare_samples`: two groups of measurements of one metric, as a ratio with an interval."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dashboard.detection.distributions import normal_quantile
from dashboard.detection.doubts import NO_RATIO, TOO_FEW_SAMPLES
from dashboard.detection.medians import sorted_median
from dashboard.detection.scaling import Scale, safe_median
from dashboard.detection.segmentation import Floats
from dashboard.detection.types import Comparison, Difference, Doubt, Verdict

LEVEL = 0.95
# A rank test of three against three can't reach 5 %: its smallest p-value is 2 / 20.
ENOUGH_SAMPLES = 4


def compare_samples(a: Sequence[float], b: Sequence[float], between: float = 0.0) -> Comparison:
    """How samples b stand to samples a: Hodges-Lehmann's ratio with the rank test's interval.

    `between` is the noise (relative standard deviation) that separates two runs of the same code and that
    repetitions inside one run can't show; it widens the interval. Raises ValueError for an empty group or
    a value that isn't finite.
    """
    old, new = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if not len(old) or not len(new):
        raise ValueError("each group needs at least one sample")
    both = np.concatenate([old, new])
    if not np.isfinite(both).all():
        raise ValueError("samples must be finite")
    scale = Scale.fit(both)
    shifts = np.sort(np.subtract.outer(scale.apply(new), scale.apply(old)).ravel())
    level = safe_median(old)
    ratio = scale.ratio(sorted_median(shifts), level)
    doubts = () if scale.logarithmic else (Doubt(NO_RATIO),)
    if min(len(old), len(new)) < ENOUGH_SAMPLES:
        few = Doubt(TOO_FEW_SAMPLES, {"least": ENOUGH_SAMPLES, "a": len(old), "b": len(new)})
        return Comparison(ratio, None, None, "?", (*doubts, few))
    low, high = shift_interval(shifts, len(old), len(new), between * math.sqrt(2))
    return Comparison(
        ratio, scale.ratio(low, level), scale.ratio(high, level), interval_verdict(low, high), doubts
    )


def compare_differences(a: Sequence[float], b: Sequence[float], between: float = 0.0) -> Difference:
    """How far samples b lie from samples a, in their own unit: for values that have no ratios.

    `between` is the standard deviation that separates two runs of the same code, in that unit.
    """
    old, new = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if not len(old) or not len(new):
        raise ValueError("each group needs at least one sample")
    if not (np.all(np.isfinite(old)) and np.all(np.isfinite(new))):
        raise ValueError("samples must be finite")
    shifts = np.sort(np.subtract.outer(new, old).ravel())
    middle = sorted_median(shifts)
    if min(len(old), len(new)) < ENOUGH_SAMPLES:
        few = Doubt(TOO_FEW_SAMPLES, {"least": ENOUGH_SAMPLES, "a": len(old), "b": len(new)})
        return Difference(middle, None, None, "?", (few,))
    low, high = shift_interval(shifts, len(old), len(new), between * math.sqrt(2))
    return Difference(middle, low, high, interval_verdict(low, high))


def shift_interval(shifts: Floats, m: int, n: int, between: float) -> tuple[float, float]:
    """The interval of a shift from its m * n sorted pairwise differences, widened by noise between runs."""
    out = rank_cutoff(m, n)
    middle = sorted_median(shifts)
    low, high = float(shifts[out]), float(shifts[-1 - out])
    extra = normal_quantile((1 + LEVEL) / 2) * between
    return middle - math.hypot(middle - low, extra), middle + math.hypot(high - middle, extra)


def rank_cutoff(m: int, n: int) -> int:
    """How many pairwise differences lie outside the interval on each side (U test, normal approximation)."""
    spread = math.sqrt(m * n * (m + n + 1) / 12)
    return max(0, math.floor(m * n / 2 - normal_quantile((1 + LEVEL) / 2) * spread))


def interval_verdict(low: float, high: float) -> Verdict:
    """`~` where the interval holds no difference."""
    if low <= 0 <= high:
        return "~"
    return "higher" if low > 0 else "lower"
