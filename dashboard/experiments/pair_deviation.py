"""How far the pairs of an experiment lie apart, and how many like them prove a difference of one per cent."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from dashboard.detection.pairs import FEWEST_PAIRS
from dashboard.detection.provable_effect import StepSpread, measure_step_spread, provable_by_either
from dashboard.metric_scale import LEAST_NOISE
from dashboard.models import Experiment, ExperimentPair

SMALL_DIFFERENCE = 0.01
# Nobody measures more.
MOST_PAIRS = 10_000


@dataclass(frozen=True, slots=True)
class PairDeviation:
    """The standard deviation of one pair, of the logarithm of its ratio: 0.01 is about one per cent.

    `by_means`: of its two windows. `by_steps`: of its single steps, None where these don't tell. So many
    `pairs` like them prove a difference of one per cent in four of five experiments, None where MOST_PAIRS
    don't. `seconds` that one takes; 0 where another experiment measured them.
    """

    by_means: float
    by_steps: float | None
    pairs: int | None
    seconds: float


def measure_pair_deviation(
    experiment: Experiment, measured: Sequence[ExperimentPair]
) -> PairDeviation | None:
    """Of the undisturbed pairs; None of too few, of what differences tell, of those that repeat exactly.

    What is learned is weighed by differences in steps of what is suspected: no percentage tells of it.
    """
    undisturbed = [pair for pair in measured if not pair.disturbed]
    metric = experiment.metric
    compared_by_ratios = not (metric.is_exponent or metric.has_sign or metric.is_quality)
    if not compared_by_ratios or len(undisturbed) < FEWEST_PAIRS:
        return None
    if min(min(pair.base, pair.head) for pair in undisturbed) <= 0:
        return None
    deviation = stdev(math.log(pair.head / pair.base) for pair in undisturbed)
    if not deviation:
        return None
    steps, believed = step_spread(undisturbed), max(deviation, LEAST_NOISE)
    enough = bisect_left(
        range(MOST_PAIRS),
        True,
        key=lambda count: provable_by_either(believed, steps, count) <= SMALL_DIFFERENCE,
    )
    return PairDeviation(
        deviation,
        steps.deviation if steps else None,
        enough if enough < MOST_PAIRS else None,
        fmean(pair.seconds for pair in undisturbed),
    )


def step_spread(undisturbed: Sequence[ExperimentPair]) -> StepSpread | None:
    """By their single steps; None where a pair has kept nothing of them."""
    ratios = [pair.step_ratio for pair in undisturbed if pair.step_ratio is not None]
    kinds_error = undisturbed[-1].kinds_error
    if len(ratios) < len(undisturbed) or kinds_error is None:
        return None
    order = [pair.base_first for pair in undisturbed]
    return measure_step_spread([math.log(ratio) for ratio in ratios], order, kinds_error, LEAST_NOISE)
