"""The smallest step that a series would show, and that an experiment would prove."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from dashboard.detection import noise, paired_steps, pairs
from dashboard.detection.distributions import normal_quantile, normal_share
from dashboard.detection.judgement import DETECT_FROM, FEWEST_POINTS, loss_for
from dashboard.detection.levels import LEVEL_WINDOW
from dashboard.detection.readings import DISTURBED_KINDS, Readings, prepare_readings, repeats_exactly
from dashboard.detection.repetitions import Repetitions
from dashboard.detection.rules import ALARM
from dashboard.detection.segmentation import Loss
from dashboard.detection.types import Series

# With this probability a step of the size that is told is found.
POWER = 0.8
# Beyond this, in the logarithm, a step is called infinite.
LARGEST = 700.0
# No deviation is none: it would be divided by.
TINY = 1e-12
# How the noises are drawn that a step is compared with; a penalty is rounded so that they are drawn once.
DRAWS, HALVINGS, SURELY, ROUNDED = 1000, 12, 6.0, 0.1
# One part is the main one where it is this much of the variance.
MAIN_PART = 0.5

NoiseSource = Literal["repetitions", "runs"]


@dataclass(frozen=True, slots=True)
class RunNoise:
    """The standard deviation of a run's judged value, a fraction of its level.

    `source`: whether it comes from what repetitions of one run differ by, or from what runs differ by beside
    that; None where runs have no repetitions.
    """

    deviation: float
    source: NoiseSource | None


def minimum_detectable_effect(series: Series, n: int, power: float = POWER) -> float:
    """The smallest relative rise that `n` new points (n >= 1) raise a change for, with this probability.

    A fraction: 0.1 is +10 %. Infinite where no rise of any size would be reported: at the first point of
    a noisy metric, or after too few points.
    """
    return smallest_rise(series, prepare_readings(series), n, power)


def noise_and_effects(series: Series, counts: Sequence[int]) -> tuple[RunNoise | None, list[float]]:
    """`measure_run_noise` and the `minimum_detectable_effect` of each of these counts, with one look at the
    points."""
    readings = prepare_readings(series)
    return noise_of_readings(series, readings), [smallest_rise(series, readings, n) for n in counts]


def smallest_rise(series: Series, readings: Readings, n: int, power: float = POWER) -> float:
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n}")
    if repeats_exactly(series):
        return 0.0
    known = min(len(readings.values), LEVEL_WINDOW)
    if known + n < FEWEST_POINTS or not known:
        return math.inf
    seen = noise.neighbour_noise(readings.scaled)
    # A short history may be believed to be calmer than it is: its points scatter all the same.
    deviation = max(float(np.median(readings.noise)), seen)
    paid = deviation * noises_needed(known, n, judging_loss(readings), power)
    # A step is told where what is seen of it reaches the floor as well.
    logarithmic = readings.scale.logarithmic
    floor = math.log1p(readings.floor) if logarithmic else readings.floor
    error = seen * math.sqrt((known + n) / (known * n))
    step = max(paid, floor + normal_quantile(power) * error)
    return math.expm1(step) if logarithmic and step < LARGEST else step


def judging_loss(readings: Readings) -> Loss:
    """The loss by which a series is judged, with samples or without."""
    n = len(readings.values)
    return ALARM.loss(n) if n >= DETECT_FROM and not readings.sampled else loss_for(n)


def noises_needed(known: int, n: int, loss: Loss, power: float) -> float:
    """The step, in noises, that pays the penalty for n new points after `known` ones, so probably.

    Drawn, since a bounded loss has no formula for it: of few points each has to say nearly all that it may.
    """
    if n * loss.cap <= loss.penalty:
        return math.inf
    return draw_noises_needed(known, n, loss.cap, round(loss.penalty / ROUNDED) * ROUNDED, power)


@cache
def draw_noises_needed(known: int, n: int, cap: float, penalty: float, power: float) -> float:
    loss, drawn = Loss(cap, penalty), np.random.default_rng(0)
    errors = drawn.normal(size=(DRAWS, n))
    old = drawn.normal(scale=1 / math.sqrt(known), size=(DRAWS, 1))
    levels = (errors.mean(axis=1, keepdims=True), np.median(errors, axis=1, keepdims=True))
    own = np.minimum(*(loss.evaluate(errors - level).sum(axis=1) for level in levels))

    def share_paid(step: float) -> float:
        return float(np.mean(loss.evaluate(step + errors - old).sum(axis=1) - own > penalty))

    low, high = 0.0, math.sqrt(cap) * SURELY
    if share_paid(high) < power:
        return math.inf
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if share_paid(middle) >= power else (middle, high)
    return high


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
    own, mean = (max(deviation, TINY) / math.sqrt(count) for deviation in (spread.deviation, of_means))
    half = pairs.interval_half_width(count, spread.deviation, error, paired_steps.PRIOR)
    half += paired_steps.ERRORS_OF_KINDS * spread.kinds_error * math.sqrt(spread.pairs / count)
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


def measure_run_noise(series: Series) -> RunNoise | None:
    """How noisy the untainted points of a series are; None of fewer than two, or without a ratio scale."""
    return noise_of_readings(series, prepare_readings(series))


def noise_of_readings(series: Series, readings: Readings) -> RunNoise | None:
    if len(readings.values) < 2 or not readings.scale.logarithmic:
        return None
    total = noise.neighbour_noise(readings.scaled)
    if not readings.sampled:
        return RunNoise(math.expm1(total), None)
    samples = Repetitions.of([series.points[i].samples for i in readings.kept]).on_scale(readings.scale)
    error = noise.error_of_best if series.kind in DISTURBED_KINDS else noise.error_of_median
    variances = noise.sample_variances(samples)
    within = float(np.median(noise.variances_of_values(samples, variances, error)))
    return RunNoise(math.expm1(total), "repetitions" if within >= MAIN_PART * total**2 else "runs")
