"""`detect` and `suspect`: the change points of plain values, without samples or a kind."""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dashboard.detection import noise
from dashboard.detection.autocorrelation import drop_weak_starts, learn_autocorrelation, step_height
from dashboard.detection.drift import WINDOW_POINTS, drop_slopes
from dashboard.detection.levels import neighbouring_levels, residuals_of_levels
from dashboard.detection.medians import fast_median
from dashboard.detection.noisy_stretches import drop_noisy_stretches
from dashboard.detection.rules import ALARM, SUSPICION, Rule
from dashboard.detection.scaling import Scale
from dashboard.detection.segmentation import GRID_STEP, KNOWN_COST, Floats, Grid, Segmentation

LEAST_NOISE = 1e-9  # on the judging scale: a constant series has none, and any step in it is one
# From so many points on the noise is known: learnt anew only once the series has grown by a forty-eighth, so
# that a change near the edge doesn't come and go with each point.
SETTLED = 96
GROWTH = 1 / 48
# One step lies between a third at most of the points that are a quarter of the history apart: the median
# distance doesn't hold it.
STEP_SPAN = 4

# A suspicion may rest on the newest points alone, on one even, where they are so many noises off their level,
# and so many times as far as any point of it was before: a series that throws outliers sets its own mark.
FAR_OFF = 6.0
FARTHER_FACTOR = 1.5
FAR_WINDOW = 50
FAR_POINTS = 3  # with one more the segmentation sees it in any case


@dataclass(frozen=True, slots=True)
class History:
    """Values (n,) on the judging scale, and the noise that the first `learnt` of them show."""

    values: Floats
    noise: float
    learnt: int


@dataclass(frozen=True, slots=True)
class Candidates:
    """The starts of the cheapest levels: of the points that the noise is learnt from, and of all."""

    learnt_starts: list[int]
    starts: list[int]


def detect(values: Sequence[float]) -> list[int]:
    """The indices (ascending, never 0) at which a new level starts, for a history as it stands.

    Deterministic. Few false alarms: an alarm without any measurement repeated. Raises ValueError for a value
    that isn't finite.
    """
    return find_starts(scale_history(values, ALARM.reach), ALARM)


def detect_again(values: Sequence[float], known: Collection[int]) -> list[int]:
    """What `detect` finds, where a little noise neither moves nor removes what is `known` from before.

    If it does, the best of the known starts and of those found now are taken, provided that none is lost by
    that: a known start needs less than a new one, and its step is no noise.
    """
    found = detect(values)
    if set(known) <= set(found):
        return found
    parts = dict.fromkeys(found, 1.0) | dict.fromkeys(known, KNOWN_COST)
    kept = find_starts(scale_history(values, ALARM.reach, known), ALARM, parts)
    return kept if len(kept) >= len(found) else found


def suspect(values: Sequence[float]) -> list[int]:
    """The same, earlier and with more false ones: where it is worth measuring again. See `detect`."""
    history = scale_history(values, SUSPICION.reach)
    starts, n = find_starts(history, SUSPICION), len(history.values)
    begin = max(starts[-1] if starts else 0, n - FAR_WINDOW - FAR_POINTS)
    far = count_far_points(history.values[begin:], history.noise)
    return [*starts, n - far] if far else starts


def scale_history(values: Sequence[float], reach: int, known: Collection[int] = ()) -> History:
    """Values (n,) on the scale of their first points; wander at lags up to `reach` counts as their noise.

    The steps at `known` indices don't count as noise.
    """
    array = np.asarray(values, dtype=np.float64)
    if not np.all(np.isfinite(array)):
        raise ValueError("values must be finite")
    learnt = learning_length(len(array), phase=zlib.crc32(array[:1].tobytes()) / 2**32)
    scale = Scale.fit(array[:learnt])
    if scale.logarithmic and (np.sign(array) != scale.sign).any():
        # There are no logarithms: the scale is that of all points up to the first of another sign.
        learnt = int(np.argmax(np.sign(array) != scale.sign)) + 1
        scale = Scale.fit(array[:learnt])
    scaled = scale.apply(array)
    head = scaled[:learnt]
    residuals = head
    if known:
        residuals = residuals_of_levels(head, sorted({start for start in known if 0 < start < learnt}))
    own = min(noise_with_wander(head, reach), noise_with_wander(residuals, reach))
    sigma = max(own, noise.rounding_noise(head), LEAST_NOISE)
    return History(scaled, sigma, learnt)


def noise_with_wander(values: Floats, reach: int) -> float:
    """The noise of values (n,) at lags up to `reach`, few enough for one step not to pass for wander."""
    return noise.largest_lag_noise(values, min(reach, max(len(values) // STEP_SPAN, SUSPICION.reach)))


def learning_length(n: int, phase: float) -> int:
    """How many of a series' first n points its scale and its noise are learnt from.

    A `phase` in [0, 1) of its own keeps the series of a project, all of one length, from learning at the same
    commit: their false alarms would come together.
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
    values, sigma, n = history.values, history.noise, len(history.values)
    first_points, loss = values[: history.learnt], rule.loss(history.learnt)
    grid = Grid.covering(first_points, GRID_STEP * sigma)
    fit = Segmentation(grid, loss, rule.baseline if allowed is None else n, allowed or {})
    fit.extend(first_points, np.full(history.learnt, sigma))
    learnt_starts = fit.starts()
    for value in values[history.learnt :].tolist():
        fit.add(value, sigma)
    starts = fit.starts()
    if rule.evidence and allowed is None:
        # Before anything is asked of it: beside a start that isn't at its place neither level is what it is.
        learnt_starts, starts = (relocate_first(each, history, rule) for each in (learnt_starts, starts))
    return Candidates(learnt_starts, starts)


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
        starts = drop_slopes(starts, values, np.full(n, sigma), rule.cap)
    if rule.advantage:
        starts = drop_noisy_stretches(starts, values, sigma, rule.advantage, parts)
    return [
        b
        for a, b, c in neighbouring_levels(starts, n)
        if step_height(values[a:b], values[b:c], sigma) >= rule.least_step
    ]


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


def count_far_points(level: Floats, sigma: float) -> int:
    """How many of the newest points of a level (n,) are far off, and farther than any before them."""
    for count in range(FAR_POINTS, 0, -1):
        known, newest = level[:-count][-FAR_WINDOW:], level[-count:]
        if len(known) <= SUSPICION.baseline:
            continue
        centre = fast_median(known)
        mark = max(FAR_OFF * sigma, FARTHER_FACTOR * float(np.abs(known - centre).max()))
        if (newest - centre > mark).all() or (centre - newest > mark).all():
            return count
    return 0
