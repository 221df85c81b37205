"""Levels on both sides of a step, and what the step is known to be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dashboard.detection.distributions import student_quantile, student_upper_tail
from dashboard.detection.medians import fast_median
from dashboard.detection.noise import MEDIAN_EFFICIENCY, robust_deviation
from dashboard.detection.scaling import Scale
from dashboard.detection.segmentation import Floats

LEVEL_CLIP = 1.5  # noises: Huber's bound; of Gaussians it wastes 4 % of the points, a median 36 %
# Points on each side of a step that say whether it is one: further away a level wanders.
WINDOW_POINTS = 30
LEVEL_WINDOW = 20  # points next to a step that tell its size: further away, a level may have wandered


@dataclass(frozen=True, slots=True)
class Step:
    """A step on the judging scale, with the half-width of its 95 % interval and its probability."""

    size: float
    margin: float
    confidence: float


def level_ranges(starts: Sequence[int], n: int) -> list[tuple[int, int]]:
    """Half-open ranges between the starts of levels."""
    edges = [0, *starts, n]
    return list(pairwise(edges))


def residuals_of_levels(values: Floats, starts: Sequence[int]) -> Floats:
    """Values (n,) less the medians of their levels."""
    ranges = level_ranges(starts, len(values))
    return np.concatenate([values[a:b] - fast_median(values[a:b]) for a, b in ranges])


def neighbouring_levels(starts: Sequence[int], n: int) -> list[tuple[int, int, int]]:
    """For each start b of n points its level before [a, b) and its own [b, c)."""
    return [(a, b, c) for (a, b), (_, c) in pairwise(level_ranges(starts, n))]


def robust_level(values: Floats, noise: float) -> float:
    """The level of values (n,), n > 0, of this noise: Huber's location, one step from the median.

    A median alone would know it only as well as the mean of two thirds of the points.
    """
    middle, reach = fast_median(values), LEVEL_CLIP * noise
    return middle + float(np.minimum(np.maximum(values - middle, -reach), reach).mean())


def drop_weakest(
    starts: Sequence[int], n: int, strength: Callable[[int, int, int], float], least: float
) -> list[int]:
    """Those starts of n points that have at least so much strength: the weakest goes first.

    `strength` is that of the step at b between its levels [a, b) and [b, c).
    """

    def strength_at(k: int) -> float:
        a, b, c = [0, *kept, n][k : k + 3]
        return strength(a, b, c)

    kept = list(starts)
    strengths = [strength_at(k) for k in range(len(kept))]
    while kept and min(strengths) < least:
        weakest = int(np.argmin(strengths))
        del kept[weakest], strengths[weakest]
        # Its two levels are one now: that is news to the steps at both ends of it.
        for k in range(max(weakest - 1, 0), min(weakest + 1, len(kept))):
            strengths[k] = strength_at(k)
    return kept


def estimate_step(before: Floats, after: Floats, noise: float) -> Step:
    """The step from points (m,) to points (n,) of this noise, or of what they show themselves, if more.

    Student's t with the degrees of freedom of both levels, so that two points tell less than twenty.
    """
    before, after = before[-LEVEL_WINDOW:], after[:LEVEL_WINDOW]
    freedom = len(before) + len(after) - 2
    residuals = np.concatenate([before - fast_median(before), after - fast_median(after)])
    sigma = max(noise, robust_deviation(residuals) if freedom > 2 else 0.0)
    errors = [sigma * (MEDIAN_EFFICIENCY if len(x) > 2 else 1.0) / np.sqrt(len(x)) for x in (before, after)]
    error = float(np.hypot(*errors))
    size = fast_median(after) - fast_median(before)
    return Step(size, student_quantile(0.975, max(freedom, 1)) * error, step_confidence(size, error, freedom))


def step_confidence(size: float, error: float, freedom: int) -> float:
    """The probability that a step of this size isn't noise of this standard error."""
    if error == 0:
        return 1.0 if size else 0.0
    return 1 - 2 * student_upper_tail(abs(size) / error, max(freedom, 1))


def ratio_interval(step: Step, before: float, to: Scale) -> tuple[float, float, float]:
    """Ratio, low and high of a step from the level `before` in the metric's unit."""
    at = (step.size, step.size - step.margin, step.size + step.margin)
    ratio, low, high = (to.ratio(size, before) for size in at)
    return ratio, low, high
