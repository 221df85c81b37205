"""A series that is watched: what was found in it is kept, so that a further point costs next to nothing."""

from __future__ import annotations

import math
import zlib
from array import array
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from dashboard.detection import noise
from dashboard.detection.autocorrelation import Autocorrelation, learn_autocorrelation, step_evidence
from dashboard.detection.drift import WINDOW, is_step_not_slope
from dashboard.detection.levels import LEVEL_WINDOW, level_ranges
from dashboard.detection.rules import Rule
from dashboard.detection.scaling import Scale
from dashboard.detection.segmentation import GRID_STEP, Floats, Grid, Segmentation

LEAST_NOISE = 1e-9  # on the judging scale: a constant series has none, and any step in it is one
# From so many points on the noise is known: learnt anew only once the series has grown by a forty-eighth.
SETTLED = 96
GROWTH = 1 / 48

# Points next to a step, what they say of it: distance in noises, and whether it is a step and not a slope.
Near = tuple[int, int, int]


def learning_length(n: int, phase: float) -> int:
    """How many of a series' first n points its noise is learnt from.

    A `phase` in [0, 1) of its own keeps series of one length from learning at the same commit.
    """
    if n < SETTLED:
        return n
    grown = math.floor(math.log(n / SETTLED, 1 + GROWTH) - phase)
    return SETTLED if grown < 0 else min(n, math.ceil(SETTLED * (1 + GROWTH) ** (grown + phase)))


class Watch:
    """The change points of a growing series, by a rule. `add` costs the same at any length, save to learn.

    The answer depends on the values alone: a watch that saw them one by one says what one that was made of
    them all says. It can be pickled. A value that isn't finite raises ValueError and leaves it as it was.
    """

    def __init__(self, values: Sequence[float], rule: Rule) -> None:
        self.rule = rule
        self.values = array("d")
        self.scaled = array("d")
        self.learnt = 0
        self.scale = Scale(1.0, 0.0)
        self.noise = LEAST_NOISE
        self.autocorrelation = Autocorrelation()
        self.fit: Segmentation | None = None
        self.evidence: dict[Near, float] = {}
        self.steps: dict[Near, bool] = {}
        self.firsts: dict[int, int] = {}  # where the first step is, by the end of what tells
        self.extend(np.asarray(values, dtype=np.float64).tolist())

    def add(self, value: float) -> list[int]:
        """One more point; the change points that stand now."""
        self.extend([float(value)])
        return self.starts()

    def extend(self, values: Iterable[float]) -> None:
        """More points, in their order."""
        more = array("d", values)
        if not np.all(np.isfinite(more)):
            raise ValueError("values must be finite")
        self.values += more
        phase = zlib.crc32(self.values[:1].tobytes()) / 2**32
        due = learning_length(len(self.values), phase)
        if due > self.learnt:
            self.learn(due)
        signs = np.sign(self.values[len(self.scaled) :])
        if self.scale.logarithmic and (signs != self.scale.sign).any():
            # There are no logarithms any more: everything is learnt anew, up to the first of another sign.
            self.learn(len(self.scaled) + int(np.argmax(signs != self.scale.sign)) + 1)
        for value in self.scale.apply(np.array(self.values[len(self.scaled) :])).tolist():
            self.scaled.append(value)
            if self.fit:
                self.fit.add(value, self.noise)

    def learn(self, n: int) -> None:
        """The scale, the noise and its autocorrelation from the first n points, and the fit of those anew."""
        known = np.array(self.values[:n])
        self.learnt, self.scale = n, Scale.fit(known)
        scaled = self.scale.apply(known)
        self.scaled = array("d", scaled.tolist())
        least = max(noise.rounding_noise(scaled), LEAST_NOISE)
        self.noise = max(noise.largest_lag_noise(scaled, self.rule.reach), least)
        self.evidence, self.steps, self.firsts, self.fit = {}, {}, {}, None
        if n <= self.rule.baseline:
            return
        grid = Grid.covering(scaled, GRID_STEP * self.noise)
        self.fit = Segmentation(grid, self.rule.loss(n), self.rule.baseline)
        self.fit.extend(scaled, np.full(n, self.noise))
        if self.rule.evidence:
            found = self.fit.starts()
            self.autocorrelation = learn_autocorrelation(scaled, self.noise, found, self.rule.evidence)

    def starts(self) -> list[int]:
        """The indices (ascending, never 0) at which new levels start."""
        found = self.fit.starts() if self.fit else []
        if self.rule.evidence:
            found = self.placed(self.against_slopes(self.against_wander(found)))
        return [b for a, b, c in neighbouring_levels(found, len(self.scaled)) if self.is_large(a, b, c)]

    def against_wander(self, starts: list[int]) -> list[int]:
        """Starts with enough evidence: the weakest goes first, and its levels become one."""
        while starts:
            known = [
                self.evidence_at(*self.near(*at)) for at in neighbouring_levels(starts, len(self.scaled))
            ]
            weakest = int(np.argmin(known))
            if known[weakest] >= self.rule.evidence:
                break
            starts = starts[:weakest] + starts[weakest + 1 :]
        return starts

    def against_slopes(self, starts: list[int]) -> list[int]:
        """Starts of steps: see `drift`."""
        levels = neighbouring_levels(starts, len(self.scaled))
        return [b for a, b, c in levels if self.is_step_at(*self.near(a, b, c))]

    def placed(self, starts: list[int]) -> list[int]:
        """Starts of which the first, if it is as early as the rule allows any, is put where its step lies.

        A level that began before the baseline was complete could only be given a start at its end.
        """
        if not starts or starts[0] > self.rule.baseline:
            return starts
        _, _, end = self.near(0, starts[0], [*starts, len(self.scaled)][1])
        if end not in self.firsts:
            values = np.array(self.scaled[:end]) / self.noise
            costs = [self.spread(values[:b]) + self.spread(values[b:]) for b in range(1, starts[0] + 1)]
            self.firsts[end] = 1 + int(np.argmin(costs))
        return [self.firsts[end], *starts[1:]]

    def spread(self, values: Floats) -> float:
        """The bounded loss of values (n,), in noises, around their median."""
        return float(np.minimum((values - np.median(values)) ** 2, self.rule.cap).sum())

    def near(self, a: int, b: int, c: int) -> Near:
        """The points that say what the step at b between the levels [a, b) and [b, c) is."""
        return max(a, b - WINDOW), b, min(c, b + WINDOW)

    def evidence_at(self, a: int, b: int, c: int) -> float:
        """The evidence for the step at b, kept: most steps are as they were before the newest point."""
        if (a, b, c) not in self.evidence:
            sides = np.array(self.scaled[a:b]), np.array(self.scaled[b:c])
            self.evidence[a, b, c] = step_evidence(*sides, self.noise, self.autocorrelation)
        return self.evidence[a, b, c]

    def is_step_at(self, a: int, b: int, c: int) -> bool:
        """Whether the step at b is one and no slope, kept."""
        if (a, b, c) not in self.steps:
            each = np.full(c - a, self.noise)
            self.steps[a, b, c] = is_step_not_slope(np.array(self.scaled[a:c]), each, b - a, self.rule.cap)
        return self.steps[a, b, c]

    def is_large(self, a: int, b: int, c: int) -> bool:
        """Whether the step at b is worth an alarm."""
        if not self.rule.least_step:
            return True
        before = np.median(self.scaled[max(a, b - LEVEL_WINDOW) : b])
        after = np.median(self.scaled[b : min(c, b + LEVEL_WINDOW)])
        return bool(abs(after - before) >= self.rule.least_step * self.noise)


def neighbouring_levels(starts: Sequence[int], n: int) -> list[tuple[int, int, int]]:
    """For each start b its level before [a, b) and its own [b, c)."""
    return [(a, b, c) for (a, b), (_, c) in pairwise(level_ranges(starts, n))]
