"""Medians, intervals, robust slopes and bounded series, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

CONFIDENCE = 0.95
HISTOGRAM_BINS = 64
THINNED_VALUES = 500


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean of at least one value."""
    return math.fsum(values) / len(values)


def quantile(ordered: Sequence[float], q: float) -> float:
    """Return the q-quantile of ascending values, interpolated linearly."""
    position = q * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def median(values: Sequence[float]) -> float:
    """Return the median of at least one value."""
    return quantile(sorted(values), 0.5)


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return order statistics that hold the median with 95 % confidence; None below three values.

    With fewer than six values the whole range has less than that: 94 % for five, 75 % for three.
    """
    if len(values) < 3:
        return None
    ordered = sorted(values)
    outside, cut = 0.0, 0
    for k in range(len(ordered) // 2):
        outside += 2 * math.comb(len(ordered), k) / 2 ** len(ordered)
        if outside > 1 - CONFIDENCE:
            break
        cut = k
    return ordered[cut], ordered[-1 - cut]


def theil_sen_slope(points: Sequence[tuple[float, float]]) -> tuple[float, float, float] | None:
    """Return the Theil-Sen slope of (x, y) points with its 95 % interval; None below eight points.

    The interval takes the points as independent; resident memory moves in steps, so read it as a hint.
    """
    if len(points) < 8:
        return None
    slopes = sorted(
        (y2 - y1) / (x2 - x1) for i, (x1, y1) in enumerate(points) for x2, y2 in points[i + 1 :] if x2 != x1
    )
    if not slopes:
        return None
    n = len(points)
    # Sen's interval: the number of concordant less discordant pairs is nearly normal.
    half = 1.96 * math.sqrt(n * (n - 1) * (2 * n + 5) / 18) / 2
    middle = len(slopes) / 2
    low = slopes[max(0, math.floor(middle - half))]
    high = slopes[min(len(slopes) - 1, math.ceil(middle + half))]
    return quantile(slopes, 0.5), low, high


# Student's t for a two-sided 95 % interval, by degrees of freedom from 1 on.
_STUDENT = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.306, 2.2622, 2.2281),
    *(2.201, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.093, 2.086),
)


@dataclass(frozen=True, slots=True)
class FittedLine:
    """A straight line through points by least squares, with what its intervals need."""

    slope: float
    intercept: float
    spread: float  # the residuals' standard deviation
    points: int
    middle: float  # mean of x
    width: float  # sum of the squared deviations of x

    def slope_interval(self) -> tuple[float, float]:
        """Return the bounds that hold the slope with 95 % confidence."""
        half = self._student() * self.spread / math.sqrt(self.width)
        return self.slope - half, self.slope + half

    def predict(self, x: float) -> tuple[float, float, float]:
        """Return y at x, and the bounds that hold one further point there with 95 % confidence."""
        y = self.intercept + self.slope * x
        far = 1 + 1 / self.points + (x - self.middle) ** 2 / self.width
        half = self._student() * self.spread * math.sqrt(far)
        return y, y - half, y + half

    def _student(self) -> float:
        return _STUDENT[min(self.points - 2, len(_STUDENT)) - 1]


def fit_line(points: Sequence[tuple[float, float]]) -> FittedLine:
    """Fit a line through (x, y) points; there must be three of them at least, of different x."""
    middle, height = mean([x for x, _ in points]), mean([y for _, y in points])
    width = math.fsum((x - middle) ** 2 for x, _ in points)
    slope = math.fsum((x - middle) * (y - height) for x, y in points) / width
    intercept = height - slope * middle
    squares = math.fsum((y - intercept - slope * x) ** 2 for x, y in points)
    return FittedLine(slope, intercept, math.sqrt(squares / (len(points) - 2)), len(points), middle, width)


def histogram(values: Sequence[float]) -> dict[str, Any]:
    """Return `edges` (at most 65, logarithmic) and `counts`; every positive value falls inside."""
    positive = [value for value in values if value > 0] or [1e-9]
    low, high = min(positive), max(positive)
    if high <= low * 1.0001:
        return {"edges": [low, low * 1.001], "counts": [len(values)]}
    width = math.log(high / low) / HISTOGRAM_BINS
    counts = [0] * HISTOGRAM_BINS
    for value in values:
        index = int(math.log(value / low) / width) if value > low else 0
        counts[min(index, HISTOGRAM_BINS - 1)] += 1
    edges = [low * math.exp(width * k) for k in range(HISTOGRAM_BINS)]
    return {"edges": [*edges, high], "counts": counts}


def thin_values(values: Sequence[float], most: int = THINNED_VALUES) -> dict[str, Any]:
    """Return `every` and `values`: means of that many consecutive values, at most `most` of them."""
    every = max(1, math.ceil(len(values) / most))
    means = [mean(values[start : start + every]) for start in range(0, len(values), every)]
    return {"every": every, "values": means}


def quantile_summary(values: Sequence[float]) -> dict[str, float]:
    """Return p50, p90 and p99 of at least one value."""
    ordered = sorted(values)
    return {"p50": quantile(ordered, 0.5), "p90": quantile(ordered, 0.9), "p99": quantile(ordered, 0.99)}


def ratio_interval(before: Sequence[float], after: Sequence[float]) -> tuple[float, float, float, float]:
    """Return the ratio after / before of positive values, its interval, and the interval's confidence.

    The estimate is the median of all pairwise ratios (Hodges and Lehmann); the interval counts pairs by
    the exact distribution of the Mann-Whitney statistic, and is the whole range where samples are few.
    """
    return _pairs_interval([b / a for a in before for b in after], len(before), len(after))


def shift_interval(before: Sequence[float], after: Sequence[float]) -> tuple[float, float, float, float]:
    """Return the same for the difference after - before, of values that may be 0 or below."""
    return _pairs_interval([b - a for a in before for b in after], len(before), len(after))


def _pairs_interval(pairs: Sequence[float], n: int, m: int) -> tuple[float, float, float, float]:
    ordered = sorted(pairs)
    ways = _mann_whitney(n, m)
    total = sum(ways)
    outside, cut = 2 * ways[0] / total, 0
    while cut + 1 < len(ordered) // 2 and outside + 2 * ways[cut + 1] / total <= 1 - CONFIDENCE:
        cut += 1
        outside += 2 * ways[cut] / total
    return quantile(ordered, 0.5), ordered[cut], ordered[-1 - cut], max(0.0, 1 - outside)


def _mann_whitney(n: int, m: int) -> list[int]:
    """Return how many orders of n and m values give each value 0 ... n*m of the statistic."""
    ways = [1] + [0] * (n * m)
    # The Gaussian binomial coefficient, one factor (1 - x^(m+i)) / (1 - x^i) at a time.
    for i in range(1, n + 1):
        for u in range(n * m, m + i - 1, -1):
            ways[u] -= ways[u - m - i]
        for u in range(i, n * m + 1):
            ways[u] += ways[u - i]
    return ways
