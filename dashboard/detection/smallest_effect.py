"""The smallest step that a series would show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Literal

import numpy as np

from dashboard.detection import noise
from dashboard.detection.autocorrelation import Autocorrelation, estimate_autocorrelation
from dashboard.detection.history_fit import SETTLED, noise_with_wander
from dashboard.detection.judgement import DETECT_FROM, FEWEST_POINTS, loss_for, noisy_starts
from dashboard.detection.levels import WINDOW_POINTS, residuals_of_levels
from dashboard.detection.readings import DISTURBED_KINDS, Readings, prepare_readings, repeats_exactly
from dashboard.detection.relevance import EFFECT_FLOORS
from dashboard.detection.repetitions import Repetitions
from dashboard.detection.rules import ALARM
from dashboard.detection.scaling import safe_median
from dashboard.detection.segmentation import Floats, Loss
from dashboard.detection.types import Series

# With this probability a step of the size that is reported is found.
POWER = 0.8
# Beyond this, in the logarithm, a step is called infinite.
LARGEST = 700.0
# How the points after a step are drawn: so often, and alike for what is rounded to the same.
DRAWS, HALVINGS, SURELY = 400, 10, 6.0
ROUNDED_PENALTY, ROUNDED_LEAST, ROUNDED_RATIO = 0.25, 0.25, 1.05
TINY = 0.01  # noises
REMEMBERED = 4096
ENOUGH_POINTS = 8
HIGH = 10.0  # times as far as a history goes by itself
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

    A fraction: 0.1 is +10 %. Infinite where so few points tell of no rise, unless it is many times as large
    as the level: at the first point of a noisy metric, above all.
    """
    return smallest_rises(series, prepare_readings(series), [n], power)[0]


def noise_and_effects(
    series: Series, counts: Sequence[int], judged: int = 0
) -> tuple[RunNoise | None, list[float]]:
    """The noise of a series and the `minimum_detectable_effect` of each of these counts, with one look at the
    points: the newest ones of a history of which `judged` are judged, if that is more."""
    if series.floor is None and judged > len(series.points):
        series = replace(series, floor=EFFECT_FLOORS[series.kind].at(judged))
    readings = prepare_readings(series)
    return noise_of_readings(series, readings), smallest_rises(series, readings, counts, POWER, judged)


def smallest_rises(
    series: Series, readings: Readings, counts: Sequence[int], power: float, judged: int = 0
) -> list[float]:
    """`minimum_detectable_effect` of each of these counts, of readings that are prepared already."""
    if min(counts) < 1:
        raise ValueError(f"n must be at least 1, not {min(counts)}")
    if repeats_exactly(series):
        return [0.0] * len(counts)
    if not len(readings.values):
        return [math.inf] * len(counts)
    level = describe_newest_level(readings, judged)
    steps = [smallest_step(level, n, power) for n in counts]
    logarithmic = readings.scale.logarithmic
    return [math.expm1(step) if logarithmic and step < LARGEST else step for step in steps]


@dataclass(frozen=True, slots=True)
class NewestLevel:
    """What the level of the newest points is, on the judging scale, and how a step after it will be judged.

    `known` points of the level were seen, of a `history` of so many; `scatter` is how far they lie around it,
    `likeness` how much they share with their neighbours, `proven_likeness` as much of that as isn't chance.
    Judging assumes `unit` as their noise; `detect`, which judges where points aren't `sampled`, learns it
    itself of the `learnt_points` and the new ones, `rounding` at least. `floor` is the smallest step that
    is relevant.
    """

    known: int
    history: int
    sampled: bool
    learnt_points: Floats
    scatter: float
    likeness: Autocorrelation
    proven_likeness: Autocorrelation
    unit: float
    rounding: float
    floor: float

    def is_for_detect(self, n: int) -> bool:
        """Whether `detect` will judge, when n new points have come."""
        return not self.sampled and self.history + n >= DETECT_FROM

    def loss_after(self, n: int) -> Loss:
        points = self.history + n
        return ALARM.loss(points) if self.is_for_detect(n) else loss_for(points)

    def noise_after(self, n: int) -> float:
        """The noise of a point by which n new points will be judged."""
        if not self.is_for_detect(n):
            return self.unit
        grows = self.history + n < SETTLED
        return max(noise_after_step(self.learnt_points, n if grows else 0), self.rounding)

    def least_height(self, n: int, unit: float) -> float:
        """How many noises high a step has to look with n points of the new level."""
        if not self.is_for_detect(n):
            return self.floor / unit
        variance = self.proven_likeness.variance(self.known) + self.proven_likeness.variance(
            min(n, WINDOW_POINTS)
        )
        return max(self.floor / unit, ALARM.least_step, math.sqrt(ALARM.evidence * variance))


def describe_newest_level(readings: Readings, judged: int) -> NewestLevel:
    """That of n > 0 readings, the newest ones of a history of which `judged` are judged, if that is more."""
    values, n = readings.scaled, len(readings.values)
    starts = noisy_starts([readings], [()])[0]
    begin = starts[-1] if starts else 0
    residuals = residuals_of_levels(values, starts)
    scatter = max(noise.robust_deviation(residuals), noise.neighbour_noise(values))
    unit = max(float(np.median(readings.noise)), noise.LEAST_NOISE)
    smallest = readings.scale.step(readings.least, safe_median(readings.values[begin:]))
    relative = math.log1p(readings.floor) if readings.scale.logarithmic else readings.floor
    # In a short history `detect` takes older steps for wander until it has found them, beside a new one too.
    starts_are_known = judged > n
    return NewestLevel(
        known=min(n - begin, WINDOW_POINTS),
        history=max(n, judged),
        sampled=readings.sampled,
        learnt_points=residuals if starts_are_known else values,
        # Of a few points what is expected of them is known better than how far they scatter.
        scatter=max(scatter, unit) if n < ENOUGH_POINTS else scatter,
        likeness=estimate_autocorrelation(values, starts, doubt=0.0),
        proven_likeness=estimate_autocorrelation(values, starts if starts_are_known else []),
        unit=unit,
        rounding=max(noise.rounding_noise(values), noise.LEAST_NOISE),
        floor=max(relative, smallest),
    )


def noise_after_step(points: Floats, n: int) -> float:
    """The noise that `detect` learns of these and of n points beyond a high step, which is part of it."""
    if n:
        beyond = np.resize(points[::-1], n) + HIGH * (np.ptp(points) + noise.LEAST_NOISE)
        points = np.concatenate([points, beyond])
    return noise_with_wander(points, ALARM.reach)


def smallest_step(level: NewestLevel, n: int, power: float) -> float:
    """The step, on the judging scale, that n new points show so probably; infinite where there is none."""
    loss = level.loss_after(n)
    if level.known + n < FEWEST_POINTS or n * loss.cap <= loss.penalty:
        return math.inf
    unit = level.noise_after(n)
    scatter, shared = level.scatter / unit, level.likeness.variance(n)
    of_old, of_new = (scatter * math.sqrt(part) for part in (level.likeness.variance(level.known), shared))
    within = scatter * math.sqrt(max(1.0 - shared, 0.0) / max(1.0 - 1.0 / n, 1.0 / n))
    noises = tuple(round_up_by_ratio(part) for part in (of_old, of_new, within))
    rounded = Loss(loss.cap, round_up(loss.penalty, ROUNDED_PENALTY))
    least = round_up(level.least_height(n, unit), ROUNDED_LEAST)
    return unit * draw_smallest_step(n, rounded, least, noises, power)


def round_up(value: float, step: float) -> float:
    """To a multiple of the step."""
    return math.ceil(value / step - 1e-9) * step


def round_up_by_ratio(value: float) -> float:
    """To a power of ROUNDED_RATIO; what is TINY is nothing."""
    if value < TINY:
        return 0.0
    return float(ROUNDED_RATIO ** math.ceil(math.log(value) / math.log(ROUNDED_RATIO) - 1e-9))


@lru_cache(REMEMBERED)
def draw_smallest_step(n: int, loss: Loss, least: float, noises: tuple[float, ...], power: float) -> float:
    """The step, of `least` or more, that n points pay for and show so high, with this probability; in noises.

    `noises`: the standard errors of the old and of the new level, and the deviation of a point within the new
    one. Drawn, since a bounded loss has no formula for it: of few points each has to say nearly all it may.
    """
    of_old, of_new, within = noises
    points, moved, old = draw_points(n)
    errors = within * points + of_new * moved
    levels = (errors.mean(axis=1, keepdims=True), np.median(errors, axis=1, keepdims=True))
    own = np.minimum(*(loss.evaluate(errors - level).sum(axis=1) for level in levels))
    distance = of_new * moved - of_old * old

    def share_found(step: float) -> float:
        paid = loss.evaluate(step + errors - of_old * old).sum(axis=1) - own > loss.penalty
        return float(np.mean(paid & (step + distance[:, 0] >= least)))

    low, high = least, max(math.sqrt(loss.cap) * SURELY, least + SURELY * (of_old + of_new))
    if share_found(high) < power:
        return math.inf
    if share_found(low) >= power:
        return low
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if share_found(middle) >= power else (middle, high)
    return high


@cache
def draw_points(n: int) -> tuple[Floats, Floats, Floats]:
    """Standard normal: points (DRAWS, n) less their means, and what their levels are off by (DRAWS, 1)."""
    drawn = np.random.default_rng(0)
    points = drawn.normal(size=(DRAWS, n))
    return (
        points - points.mean(axis=1, keepdims=True),
        drawn.normal(size=(DRAWS, 1)),
        drawn.normal(size=(DRAWS, 1)),
    )


def noise_of_readings(series: Series, readings: Readings) -> RunNoise | None:
    """How noisy the untainted points of a series are; None of fewer than two, or without a ratio scale."""
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
