"""A noisy series made ready for judgement: untainted, scaled, each point with its noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dashboard.detection import noise
from dashboard.detection.relevance import EFFECT_FLOORS
from dashboard.detection.repetitions import Repetitions
from dashboard.detection.scaling import Scale, safe_median
from dashboard.detection.segmentation import Floats
from dashboard.detection.types import Kind, Point, Series

# Noise isn't believed to be smaller than this part of the effect floor: steps well below relevance
# then raise no levels of their own, and a relevant step is still four noises high.
FLOOR_TO_NOISE = 0.25

# What else runs on a machine can only slow a repetition. Of these kinds the best repetition is judged: a run
# is spoilt only where all its repetitions are, and calm noise grows by an eighth (3 repetitions) at most.
DISTURBED_KINDS: frozenset[Kind] = frozenset({"time", "rate"})


# What stands for the repetitions of a point, and its standard error by their number.
Representative = Literal["best", "median", "mean"]
ERRORS: dict[Representative, Callable[[Floats], Floats]] = {
    "best": noise.error_of_best,
    "median": noise.error_of_median,
    "mean": noise.error_of_mean,
}


@dataclass(frozen=True, slots=True)
class Readings:
    """The untainted points of a series, n of them.

    `kept` (n,) are their positions and `values` (n,) are in the metric's unit. What is judged is
    `scaled` (n,), with its `noise` (n,), on the judging scale. `floor` is the effect floor, a fraction;
    `least` is the smallest relevant difference in the metric's unit. `sampled` says whether points have the
    values of several repetitions, `by_best` whether what is judged is the best of these.
    """

    kept: tuple[int, ...]
    values: Floats
    scaled: Floats
    noise: Floats
    scale: Scale
    floor: float
    least: float
    sampled: bool
    by_best: bool


# What is learned differs from seed to seed by as much at any level: near zero ratios make much of little.
ADDITIVE_KINDS: frozenset[Kind] = frozenset({"quality"})


def prepare_readings(series: Series, by: Representative = "best") -> Readings:
    """The readings of a series, each point by one of its repetitions or their mean (of logarithms, where the
    scale has these). Kinds that nothing disturbs have no best repetition: they are judged by the median.

    Raises ValueError for a value that isn't finite.
    """
    of_all = np.array([point.value for point in series.points], dtype=np.float64)
    repetitions = Repetitions.of([point.samples for point in series.points])
    refuse_non_finite(of_all, repetitions)
    kept = untainted_positions(series.points)
    is_kept = np.zeros(len(of_all), dtype=np.bool_)
    is_kept[list(kept)] = True
    values, repetitions = of_all[is_kept], repetitions.of_points(is_kept)
    scale = Scale.fit(
        np.concatenate([values, repetitions.values]), by_difference=series.kind in ADDITIVE_KINDS
    )
    effect = EFFECT_FLOORS[series.kind]
    floor = effect.at(len(values)) if series.floor is None else series.floor
    by = "median" if by == "best" and series.kind not in DISTURBED_KINDS else by
    scaled = scale.apply(repetitions.best(series.better, values) if by == "best" else values)
    if by == "mean":
        scaled = repetitions.on_scale(scale).means(scaled)
    smallest = scale.step(effect.least, safe_median(values)) if len(values) else 0.0
    least = FLOOR_TO_NOISE * max(float(np.log1p(floor)), smallest)
    sampled = bool((repetitions.counts > 1).any())
    return Readings(
        kept=kept,
        values=values,
        scaled=scaled,
        noise=noise.point_noise(scaled, repetitions.on_scale(scale), ERRORS[by], least),
        scale=scale,
        floor=floor,
        least=effect.least,
        sampled=sampled,
        by_best=by == "best" and sampled and not series.exact,
    )


def refuse_non_finite(values: Floats, repetitions: Repetitions) -> None:
    """One sentence for the first point of which the value (n,) or a sample is NaN or infinite."""
    wrong = ~np.isfinite(values)
    wrong[np.repeat(np.arange(len(values)), repetitions.counts)[~np.isfinite(repetitions.values)]] = True
    if wrong.any():
        raise ValueError(f"points[{int(wrong.argmax())}] holds a value that isn't finite")


def untainted_positions(points: Sequence[Point]) -> tuple[int, ...]:
    """The positions of the points that may be judged."""
    return tuple([i for i, point in enumerate(points) if not point.tainted])


def repeats_exactly(series: Series) -> bool:
    """True for a counter whose repetitions agree everywhere; one that differs once is treated as noisy."""
    return series.exact and all(len(set(p.samples)) <= 1 for p in series.points if not p.tainted)
