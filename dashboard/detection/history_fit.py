"""What is learnt of a history, the levels that fit it best, and which of their starts are proven."""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dashboard.detection import noise
from dashboard.detection.autocorrelation import drop_weak_starts, learn_autocorrelation, step_height
from dashboard.detection.drift import drop_slopes
from dashboard.detection.levels import WINDOW_POINTS, neighbouring_levels, residuals_of_levels
from dashboard.detection.medians import fast_median
from dashboard.detection.noisy_stretches import drop_noisy_stretches
from dashboard.detection.rules import SUSPICION, Rule
from dashboard.detection.scaling import Scale
from dashboard.detection.segmentation import GRID_STEP, Floats, Grid, Segmentation
from dashboard.detection.slow_starts import drop_slow_starts

# From so many points on the noise is known: learnt anew only once the series has grown by a forty-eighth, so
# that a change near the edge doesn't come and go with each point.
SETTLED = 96
GROWTH = 1 / 48
# One step lies between a third at most of the points that are a quarter of the history apart: the median
# distance doesn't hold it.
STEP_SPAN = 4


@dataclass(frozen=True, slots=True)
class History:
    """Values (n,) on the judging `scale`, which the first `learnt` of them tell, and the noise of those."""

    values: Floats
    scale: Scale
    noise: float
    learnt: int


@dataclass(frozen=True, slots=True)
class Candidates:
    """The starts of the cheapest levels: of the points that the noise is learnt from, and of all."""

    learnt_starts: list[int]
    starts: list[int]


def finite_values(values: Sequence[float] | Floats) -> Floats:
    """A copy (n,) of values. Raises ValueError for one that isn't finite."""
    array = np.array(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError("values must be finite")
    return array


def scale_history(values: Sequence[float] | Floats, reach: int, known: Collection[int] = ()) -> History:
    """Values (n,) on the scale of their first points; wander at lags up to `reach` counts as their noise.

    The steps at `known` indices don't count as noise.
    """
    array = finite_values(values)
    learnt = learning_length(len(array), learning_phase(array))
    scale = Scale.fit(array[:learnt])
    if not scale.holds(array):
        # There are no logarithms: the scale is that of all points up to the first of another sign.
        learnt = int(np.argmax(np.sign(array) != scale.sign)) + 1
        scale = Scale.fit(array[:learnt])
    scaled = scale.apply(array)
    head = scaled[:learnt]
    own = noise_with_wander(head, reach)
    if known:
        residuals = residuals_of_levels(head, sorted({start for start in known if 0 < start < learnt}))
        own = min(own, noise_with_wander(residuals, reach))
    sigma = max(own, noise.rounding_noise(head), noise.LEAST_NOISE)
    return History(scaled, scale, sigma, learnt)


def noise_with_wander(values: Floats, reach: int) -> float:
    """The noise of values (n,) at lags up to `reach`, few enough for one step not to pass for wander."""
    return noise.largest_lag_noise(values, min(reach, max(len(values) // STEP_SPAN, SUSPICION.reach)))


def learning_phase(values: Floats) -> float:
    """A number in [0, 1) of a series' own, from the first of its values (n,)."""
    return zlib.crc32(values[:1].tobytes()) / 2**32


def learning_length(n: int, phase: float) -> int:
    """How many of a series' first n points its scale and its noise are learnt from.

    A `phase` of its own keeps the series of a project, all of one length, from learning at the same commit:
    their false alarms would come together.
    """
    if n < SETTLED:
        return n
    grown = math.floor(math.log(n / SETTLED, 1 + GROWTH) - phase)
    return SETTLED if grown < 0 else min(n, math.ceil(SETTLED * (1 + GROWTH) ** (grown + phase)))


def find_starts(history: History, rule: Rule, allowed: Mapping[int, float] | None = None) -> list[int]:
    """The indices at which new levels start by a rule: any, or the best of those `allowed`.

    The number beside an allowed one is the part of the rule's penalty and evidence that is asked of it.
    """
    candidates = find_candidates(history, rule, allowed)
    return proven_starts(history, rule, candidates, allowed) if candidates.starts else []


def find_candidates(history: History, rule: Rule, allowed: Mapping[int, float] | None = None) -> Candidates:
    """The starts of the cheapest levels, before evidence is asked of them; see `find_starts`."""
    if history.learnt <= rule.baseline:
        return Candidates([], [])
    fit, learnt_starts = fit_levels(history, rule, allowed)
    candidates = Candidates(learnt_starts, fit.starts())
    return relocate_candidates(candidates, history, rule) if allowed is None else candidates


def fit_levels(
    history: History, rule: Rule, allowed: Mapping[int, float] | None = None
) -> tuple[Segmentation, list[int]]:
    """The cheapest levels of all points, and the starts of those of the points that the noise is learnt from.

    See `find_starts`.
    """
    first_points, loss = history.values[: history.learnt], rule.loss(history.learnt)
    grid = Grid.covering(first_points, GRID_STEP * history.noise)
    earliest = rule.baseline if allowed is None else len(history.values)
    fit = Segmentation(grid, loss, earliest, allowed or {})
    fit.extend(first_points, np.full(history.learnt, history.noise))
    learnt_starts = fit.starts()
    for value in history.values[history.learnt :].tolist():
        fit.add(value, history.noise)
    return fit, learnt_starts


def proven_starts(
    history: History, rule: Rule, candidates: Candidates, allowed: Mapping[int, float] | None = None
) -> list[int]:
    """Those candidates that have the evidence, the advantage and the height that a rule asks for."""
    values, sigma, n = history.values, history.noise, len(history.values)
    starts, parts = candidates.starts, allowed or {}
    if rule.evidence:
        first_points = values[: history.learnt]
        correlation = learn_autocorrelation(first_points, sigma, candidates.learnt_starts, rule.evidence)
        starts = drop_weak_starts(starts, values, sigma, correlation, rule.evidence, parts)
        starts = drop_slopes(starts, values, np.full(n, sigma), rule.cap, rule.over_slope)
    if rule.advantage:
        starts = drop_noisy_stretches(starts, values, sigma, rule.advantage, parts)
    if rule.paid_within:
        starts = drop_slow_starts(starts, values, sigma, rule, parts)
    return [
        b
        for a, b, c in neighbouring_levels(starts, n)
        if step_height(values[a:b], values[b:c], sigma) >= rule.least_step
    ]


def relocate_candidates(candidates: Candidates, history: History, rule: Rule) -> Candidates:
    """Candidates with the first start at its place, before anything is asked of it.

    Beside a start that isn't at its place neither level is what it is.
    """
    if not rule.evidence:
        return candidates
    both = candidates.learnt_starts, candidates.starts
    return Candidates(*(relocate_first(starts, history, rule) for starts in both))


def relocate_first(starts: list[int], history: History, rule: Rule) -> list[int]:
    """Starts of which the first, if it is as early as the rule allows any, is put where its step lies.

    A level that began before the baseline was complete could only be given a start at its end.
    """
    if not starts or starts[0] > rule.baseline:
        return starts
    first, *others = starts
    end = min([*others, len(history.values)][0], first + WINDOW_POINTS)
    near = history.values[:end] / history.noise
    costs = [spread_cost(near[:b], rule.cap) + spread_cost(near[b:], rule.cap) for b in range(1, first + 1)]
    return [1 + int(np.argmin(costs)), *others]


def spread_cost(values: Floats, cap: float) -> float:
    """The bounded loss of values (n,), in noises, around their median."""
    return float(np.minimum((values - fast_median(values)) ** 2, cap).sum())
