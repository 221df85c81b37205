"""A noisy series made ready for judgement: untainted, scaled, each point with its noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dashboard.detection import noise
from dashboard.detection.relevance import EFFECT_FLOORS
from dashboard.detection.scaling import Scale, safe_median
from dashboard.detection.segmentation import Floats
from dashboard.detection.types import Kind, Point, Series

# Noise isn't believed to be smaller than this part of the effect floor: steps well below relevance
# then raise no levels of their own, and a relevant step is still four noises high.
FLOOR_TO_NOISE = 0.25

# What else runs on a machine can only slow a repetition. Of these kinds the best repetition is judged: a run
# is spoilt only where all its repetitions are, and calm noise grows by an eighth (3 repetitions) at most.
DISTURBED_KINDS: frozenset[Kind] = frozenset({"time", "rate"})


@dataclass(frozen=True, slots=True)
class Readings:
    """The untainted points of a series, n of them.

    `kept` (n,) are their positions and `values` (n,) are in the metric's unit. What is judged is
    `scaled` (n,), with its `noise` (n,), on the judging scale. `floor` is the effect floor, a fraction;
    `least` is the smallest relevant difference in the metric's unit. `sampled` says whether points have the
    values of several repetitions.
    """

    kept: tuple[int, ...]
    values: Floats
    scaled: Floats
    noise: Floats
    scale: Scale
    floor: float
    least: float
    sampled: bool


# What is learned differs from seed to seed by as much at any level: near zero ratios make much of little.
ADDITIVE_KINDS: frozenset[Kind] = frozenset({"quality"})


def prepare_readings(series: Series) -> Readings:
    """The readings of a series. Raises ValueError for a value that isn't finite."""
    refuse_non_finite(series.points)
    kept = untainted_positions(series.points)
    points = [series.points[i] for i in kept]
    values = np.array([point.value for point in points], dtype=np.float64)
    values_and_samples = np.array([v for point in points for v in (point.value, *point.samples)])
    scale = Scale.fit(values_and_samples, by_difference=series.kind in ADDITIVE_KINDS)
    effect = EFFECT_FLOORS[series.kind]
    floor = effect.at(len(points)) if series.floor is None else series.floor
    scaled = scale.apply(np.array([judged_value(point, series) for point in points], dtype=np.float64))
    samples = split_samples(
        scale.apply(np.array([v for point in points for v in point.samples], dtype=np.float64)), points
    )
    smallest = scale.step(effect.least, safe_median(values)) if len(values) else 0.0
    least = FLOOR_TO_NOISE * max(float(np.log1p(floor)), smallest)
    error = noise.error_of_best if series.kind in DISTURBED_KINDS else noise.error_of_median
    return Readings(
        kept=kept,
        values=values,
        scaled=scaled,
        noise=noise.point_noise(scaled, samples, error, least),
        scale=scale,
        floor=floor,
        least=effect.least,
        sampled=any(len(point.samples) > 1 for point in points),
    )


def split_samples(values: Floats, points: Sequence[Point]) -> list[Floats]:
    """The samples of each point, of those of all points one behind the other."""
    ends = np.cumsum([len(point.samples) for point in points]).tolist()
    return [values[end - len(point.samples) : end] for end, point in zip(ends, points, strict=True)]


def judged_value(point: Point, series: Series) -> float:
    """The best repetition of a kind that can be disturbed, otherwise the point's value."""
    if series.kind not in DISTURBED_KINDS or not point.samples:
        return point.value
    return min(point.samples) if series.better == "lower" else max(point.samples)


def refuse_non_finite(points: Sequence[Point]) -> None:
    """One sentence for the first value that is NaN or infinite."""
    if np.isfinite([v for point in points for v in (point.value, *point.samples)]).all():
        return
    for i, point in enumerate(points):
        if not all(map(math.isfinite, (point.value, *point.samples))):
            raise ValueError(f"points[{i}] holds a value that isn't finite")


def untainted_positions(points: Sequence[Point]) -> tuple[int, ...]:
    """The positions of the points that may be judged."""
    return tuple(i for i, point in enumerate(points) if not point.tainted)


def repeats_exactly(series: Series) -> bool:
    """True for a counter whose repetitions agree everywhere; one that differs once is treated as noisy."""
    return series.exact and all(len(set(p.samples)) <= 1 for p in series.points if not p.tainted)
