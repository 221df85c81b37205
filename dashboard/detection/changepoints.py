"""`detect` and `suspect`: the change points of plain values, without samples or a kind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dashboard.detection import noise
from dashboard.detection.drift import steps_not_slopes
from dashboard.detection.levels import LEVEL_WINDOW, segments
from dashboard.detection.scaling import Scale
from dashboard.detection.segmentation import Floats, Loss, segment

LEAST_NOISE = 1e-9  # on the judging scale: a constant series has none, and any step in it is one


@dataclass(frozen=True, slots=True)
class Rule:
    """How much evidence makes a change point.

    A new level costs `cap` plus `growth` for each e-fold of the history's length, because a longer history
    has more places at which noise could pass for a step. `cap` bounds what a single point can say, which
    makes (penalty / cap) points the fewest that can carry an alarm. `reach` is the longest lag, in points, at
    which wander counts as noise. No level starts before `baseline` points: until then there is none to leave.
    A step of fewer than `least_step` noises isn't worth an alarm, however sure it is.
    """

    cap: float
    growth: float
    reach: int
    baseline: int
    least_step: float
    refuses_slopes: bool

    def loss(self, n: int) -> Loss:
        """The loss for a history of n points."""
        return Loss(self.cap, self.cap + self.growth * math.log(max(n, 10)))


ALARM = Rule(cap=5.0, growth=3.0, reach=10, baseline=15, least_step=1.0, refuses_slopes=True)
SUSPICION = Rule(cap=9.0, growth=1.5, reach=3, baseline=3, least_step=0.0, refuses_slopes=False)
# A suspicion may rest on the newest points alone, on one even, where they are so many noises off their level,
# and so many times as far as any point of it was before: a series that throws outliers sets its own mark.
FAR_OFF = 6.0
FARTHER = 1.5
FAR_WINDOW = 50
FAR_POINTS = 3  # with one more the segmentation sees it in any case


def detect(values: Sequence[float]) -> list[int]:
    """The indices (ascending, never 0) at which a new level starts, for a history as it stands.

    Deterministic. Few false alarms: an alarm without any measurement repeated. Raises ValueError for a value
    that isn't finite.
    """
    return change_points(*on_scale(values, ALARM), ALARM)


def suspect(values: Sequence[float]) -> list[int]:
    """The same, earlier and with more false ones: where it is worth measuring again. See `detect`."""
    scaled, sigma = on_scale(values, SUSPICION)
    starts = change_points(scaled, sigma, SUSPICION)
    begin = starts[-1] if starts else 0
    far = far_points(scaled[begin:], sigma)
    return [*starts, len(scaled) - far] if far else starts


def far_points(level: Floats, sigma: float) -> int:
    """How many of the newest points of a level (n,) are far off, and farther than any before them."""
    for count in range(FAR_POINTS, 0, -1):
        known, newest = level[:-count][-FAR_WINDOW:], level[-count:]
        if len(known) <= SUSPICION.baseline:
            continue
        centre = np.median(known)
        mark = max(FAR_OFF * sigma, FARTHER * float(np.abs(known - centre).max()))
        if (newest - centre > mark).all() or (centre - newest > mark).all():
            return count
    return 0


def on_scale(values: Sequence[float], rule: Rule) -> tuple[Floats, float]:
    """Values (n,) on the judging scale, with the noise that they all share. Refuses what isn't finite."""
    array = np.asarray(values, dtype=np.float64)
    if not np.all(np.isfinite(array)):
        raise ValueError("values must be finite")
    scaled = Scale.of(array).apply(array)
    least = max(noise.of_rounding(scaled), LEAST_NOISE)
    return scaled, max(noise.with_wander(scaled, rule.reach), least)


def change_points(scaled: Floats, sigma: float, rule: Rule) -> list[int]:
    """The change points of scaled values (n,) of this noise, by a rule."""
    if len(scaled) <= rule.baseline:
        return []
    loss, each = rule.loss(len(scaled)), np.full(len(scaled), sigma)
    starts = segment(scaled, each, loss, rule.baseline)
    if rule.refuses_slopes:
        starts = steps_not_slopes(starts, scaled, each, loss.cap)
    return [
        b
        for (a, b), (_, c) in pairwise(segments(starts, len(scaled)))
        if step_size(scaled[a:b], scaled[b:c]) >= rule.least_step * sigma
    ]


def step_size(before: Floats, after: Floats) -> float:
    """How far two levels are apart, by the points next to the step."""
    return float(abs(np.median(after[:LEVEL_WINDOW]) - np.median(before[-LEVEL_WINDOW:])))
