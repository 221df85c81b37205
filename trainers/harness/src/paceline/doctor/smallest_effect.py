"""The smallest slow-down that an experiment could prove here, from how much equal work differs.

An experiment measures pairs, and proves a slow-down once the interval of the mean of their log ratios lies
above nothing. That interval holds at every number of pairs at once; its half width is that of the site's
engine, for the same error. Assumed is that the log ratios of pairs are Gaussian, with the deviation that
equal work showed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev

# As the engine has them; the probability that it ever proves what isn't there, and its prior's scale.
ERROR = 0.01
PRIOR = 5.0
FEWEST_PAIRS = 4
# With this probability an effect of the size that is reported is proven.
POWER = 0.8
BUDGET = 600.0  # seconds


@dataclass(frozen=True, slots=True)
class Spread:
    """How much pairs of equal work differ: the deviation and the mean of their log ratios."""

    pairs: int
    deviation: float
    bias: float

    @property
    def deviation_bound(self) -> float:
        """Above the true deviation in nine of ten cases: of few pairs it may come out too small.

        By Wilson and Hilferty's approximation of the chi-squared distribution.
        """
        freedom = self.pairs - 1
        part = 2 / (9 * freedom)
        quantile = freedom * (1 - part + NormalDist().inv_cdf(0.1) * math.sqrt(part)) ** 3
        return self.deviation * math.sqrt(freedom / quantile)


def measure_spread(first: Sequence[float], second: Sequence[float]) -> Spread:
    """Of pairs of times, two at least, in the order in which they were paired."""
    ratios = [math.log(after / before) for before, after in zip(first, second, strict=True)]
    return Spread(len(ratios), stdev(ratios), fmean(ratios))


def interval_half_width(pairs: int, deviation: float, error: float = ERROR) -> float:
    """Half the width of the interval that is valid after every pair; infinite while there are too few."""
    if pairs < FEWEST_PAIRS:
        return math.inf
    spread = 1 + pairs * PRIOR**2
    bound = (math.sqrt(spread) / error) ** (2 / pairs)
    if bound >= spread:
        return math.inf
    return math.sqrt((pairs - 1) * (bound - 1) / (1 - bound / spread)) * deviation / math.sqrt(pairs)


def smallest_effect(deviation: float, pairs: int) -> float:
    """The relative slow-down that so many pairs prove with the probability POWER; infinite for too few."""
    reach = NormalDist().inv_cdf(POWER) * deviation / math.sqrt(pairs) if pairs else 0.0
    log_ratio = interval_half_width(pairs, deviation) + reach
    return math.expm1(log_ratio) if log_ratio < 10 else math.inf


def pairs_within(budget: float, repetition_seconds: float) -> int:
    """How many pairs of repetitions of this length there is time for."""
    return int(budget / (2 * repetition_seconds))
