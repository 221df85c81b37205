"""The smallest step that an experiment would prove, as far as the pairs of an earlier one tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dashboard.detection import paired_steps, pairs
from dashboard.detection.distributions import normal_quantile, normal_share
from dashboard.detection.smallest_effect import HALVINGS, LARGEST, POWER, SURELY

# No deviation is none: it would be divided by.
TINY = 1e-12


@dataclass(frozen=True, slots=True)
class StepSpread:
    """How much undisturbed pairs differ by their single steps: the deviation of a pair, as a logarithm.

    `kinds_error`: of what so many pairs together say of long and short steps.
    """

    pairs: int
    deviation: float
    kinds_error: float


def measure_step_spread(
    typical: Sequence[float], good_first: Sequence[bool], kinds_error: float, least_noise: float
) -> StepSpread | None:
    """Of the log ratios of pairs (n,), weighed as `estimate_by_steps` does; None of too few."""
    if len(typical) < paired_steps.FEWEST_PAIRS:
        return None
    _, deviation = paired_steps.comparable_pairs(np.asarray(typical), good_first)
    return StepSpread(len(typical), max(deviation, least_noise), kinds_error)


def provable_by_either(deviation: float, steps: StepSpread | None, count: int) -> float:
    """The smallest relative step that the means of so many pairs prove, or their single steps.

    Each look has half of the error where both are taken. `deviation` is that of the means, as of
    `provable_effect`.
    """
    if steps is None:
        return provable_effect(deviation, count)
    error = pairs.ERROR / 2
    return min(provable_effect(deviation, count, error), provable_by_steps(steps, deviation, count, error))


def provable_by_steps(spread: StepSpread, of_means: float, count: int, error: float) -> float:
    """The smallest relative step that single steps of so many pairs prove with the probability POWER.

    `of_means` is the deviation of the pairs' means, whose middle has to lie on the same side. Infinite for
    too few pairs, and for steps that are too large to be weighed so.
    """
    if count < paired_steps.FEWEST_PAIRS:
        return math.inf
    of_pair = paired_steps.deviation_with_kinds(spread.deviation, spread.pairs, spread.kinds_error)
    own, mean = (max(deviation, TINY) / math.sqrt(count) for deviation in (of_pair, of_means))
    half = pairs.interval_half_width(count, of_pair, error, paired_steps.PRIOR_SCALE)
    low, high = half, half + SURELY * max(own, mean)
    if low > math.log1p(paired_steps.LARGEST_STEP):
        return math.inf
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        found = normal_share((middle - half) / own) * normal_share(middle / mean)
        low, high = (low, middle) if found >= POWER else (middle, high)
    return math.expm1(high) if high <= math.log1p(paired_steps.LARGEST_STEP) else math.inf


def provable_effect(deviation: float, count: int, error: float = pairs.ERROR) -> float:
    """The smallest relative step that the means of so many pairs prove with the probability POWER.

    `deviation` is that of the logarithms of the pairs' ratios. Infinite for too few pairs.
    """
    if not count:
        return math.inf
    half = pairs.interval_half_width(count, deviation, error)
    step = half + normal_quantile(POWER) * deviation / math.sqrt(count)
    return math.expm1(step) if step < LARGEST else math.inf
