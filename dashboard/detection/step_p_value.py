"""The p-value of a step at a place, so far out that many series can be asked at once.

`shift_p_value` asks whether the newest points are a new level, of a few series. Here a step has been found at
a place in one of hundreds, and what is allowed is a ten-thousandth: there an autocorrelation that is taken as
it looks, from a few dozen points, makes p-values several times too small.
"""

from __future__ import annotations

import numpy as np

from dashboard.detection import noise
from dashboard.detection.autocorrelation import Autocorrelation, estimate_autocorrelation
from dashboard.detection.distributions import student_upper_tail
from dashboard.detection.medians import fast_median
from dashboard.detection.segmentation import Floats
from dashboard.detection.shift_p_value import FEWEST_KNOWN, LEAST_NOISE, run_p_value

# How many of its first points may tell a new level: a few, all of them far off; or more, by their mean.
RUNS = (3, 4, 6, 9)
MEANS = (8, 16)
KNOWN = 160  # points of the level before
CLIP = 4.0  # noises: what one point adds to a mean at most
# Standard errors above what it looks like: so large the autocorrelation is taken to be.
CAUTION = 1.0


def step_p_value(scaled: Floats, at: int, since: int = 0) -> float:
    """The p-value, two-sided, of a new level that starts at `at`, of readings (n,) on the judging scale.

    1 where the level before, which starts at `since`, has too few points.
    Each place is tried with so many lengths, whenever it is looked at, and they are paid for (Bonferroni):
    among all places of a series that never changes, no larger share than a risk has p-values below it.
    """
    known, new = scaled[since:at][-KNOWN:], scaled[at:]
    if len(known) < FEWEST_KNOWN:
        return 1.0
    spread = max(
        noise.robust_deviation(known), noise.neighbour_noise(known), noise.rounding_noise(known), LEAST_NOISE
    )
    correlation = estimate_autocorrelation(known, [], doubt=-CAUTION)
    level = fast_median(known)
    before, after = ((points - level) / spread for points in (known, new))
    apart = after / np.sqrt(1 + correlation.variance(len(known)))
    chances = [run_p_value(apart[:count], before, correlation) for count in RUNS if count <= len(new)]
    chances += [mean_p_value(after[:count], before, correlation) for count in MEANS if count <= len(new)]
    return min(1.0, len((*RUNS, *MEANS)) * min(chances, default=1.0))


def mean_p_value(newest: Floats, known: Floats, correlation: Autocorrelation) -> float:
    """The p-value of the mean of points (m,) after a level's points (k,), in noises: Student's t.

    With the freedom of as many points as the level's are worth (Bayley and Hammersley 1946).
    """
    bounded, level = (np.clip(points, -CLIP, CLIP) for points in (newest, known))
    variance = max(1.0, float(level.var(ddof=1)))
    error = np.sqrt(variance * (correlation.variance(len(bounded)) + correlation.variance(len(level))))
    freedom = max(1.0, 1 / correlation.variance(len(level)) - 1)
    return 2 * student_upper_tail(abs(bounded.mean() - level.mean()) / error, freedom)
