"""The p-value of the newest points of a series: how likely they are if nothing changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dashboard.detection import noise
from dashboard.detection.autocorrelation import Autocorrelation, estimate_autocorrelation
from dashboard.detection.distributions import student_upper_tail
from dashboard.detection.medians import fast_median
from dashboard.detection.scaling import Scale
from dashboard.detection.segmentation import Floats

# How many of the newest points may be a new level: a few, all of them far off; or more, by their mean.
RUNS = (2, 3, 4)
MEANS = (8, 16)
KNOWN = 40  # points of the level before: older ones may be of another time
FEWEST_KNOWN = 10
TAIL = 3.0  # degrees of freedom: of noise more is not believed, however calm it has been
LEAST_NOISE = 1e-9
CLIP = 3.0  # noises: what one point adds to a mean at most


def shift_p_value(values: Sequence[float], since: int = 0) -> float:
    """The p-value, two-sided, of a new level among the newest of values (n,); 1 where too few are known.

    `since` is where the present level starts. Several lengths of the new level are tried and paid for
    (Bonferroni). One point alone never says anything. Raises ValueError for a value that isn't finite.
    """
    array = np.asarray(values, dtype=np.float64)
    if not np.all(np.isfinite(array)):
        raise ValueError("values must be finite")
    recent = array[since:][-(KNOWN + max(MEANS)) :]
    scaled = Scale.fit(recent).apply(recent)
    tried = [new for new in (*RUNS, *MEANS) if len(scaled) - new >= FEWEST_KNOWN]
    chances = [newest_p_value(scaled[:-new][-KNOWN:], scaled[-new:]) for new in tried]
    return min(1.0, len(chances) * min(chances)) if chances else 1.0


def newest_p_value(known: Floats, newest: Floats) -> float:
    """The p-value of points (m,) after a level's points (k,)."""
    by_points, by_neighbours = noise.robust_deviation(known), noise.neighbour_noise(known)
    spread = max(by_points, by_neighbours, noise.rounding_noise(known), LEAST_NOISE)
    correlation = estimate_autocorrelation(known, [], doubt=0.0)
    before, after = ((points - fast_median(known)) / spread for points in (known, newest))
    if len(newest) in RUNS:
        return run_p_value(after / np.sqrt(1 + correlation.variance(len(known))), before, correlation)
    return mean_p_value(after, before, correlation)


def mean_p_value(newest: Floats, known: Floats, correlation: Autocorrelation) -> float:
    """The p-value of the mean of points (m,) after a level's points (k,), in noises: Student's t.

    Outliers count up to a bound, in the mean and in its variance, and on both sides: many series throw them
    to one side only, so that the mean of a level lies beside its median.
    """
    bounded, level = (np.clip(points, -CLIP, CLIP) for points in (newest, known))
    variance = max(1.0, float(level.var(ddof=1)))
    error = np.sqrt(variance * (correlation.variance(len(bounded)) + correlation.variance(len(level))))
    return 2 * student_upper_tail(abs(bounded.mean() - level.mean()) / error, len(level) - 1)


def run_p_value(apart: Floats, known: Floats, correlation: Autocorrelation) -> float:
    """The p-value of points (m,) that all lie off on one side, by the nearest of them.

    The chance of one such point is what the level's own points (k,) and heavy tails make it; that of all is
    its power, by as many points as are independent.
    """
    if not ((apart > 0).all() or (apart < 0).all()):
        return 1.0
    side = float(np.sign(apart[0]))
    nearest = float(np.abs(apart).min())
    beyond = (1 + int((known * side >= nearest).sum())) / (1 + len(known))
    single = max(beyond, student_upper_tail(nearest, TAIL))
    return float(min(1.0, 2 * single ** (len(apart) / correlation.inflation(len(apart)))))
