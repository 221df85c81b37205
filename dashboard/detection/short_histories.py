"""Levels of a history that is too short to show how it wanders: only what stands out far is one.

A handful of points tells little of the noise, and nothing of how far a series goes by itself. So a step has
to be so large that hardly any noise makes it, whichever of its two levels is the noisier: the fewer points,
the larger (Student, *The Probable Error of a Mean*, Biometrika 1908).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

from dashboard.detection.distributions import student_quantile
from dashboard.detection.levels import neighbouring_levels
from dashboard.detection.medians import fast_median
from dashboard.detection.noise import LEAST_NOISE, rounding_noise
from dashboard.detection.rules import ALARM, CLEAR, CLEAR_AND_LASTING, ShortRule
from dashboard.detection.scaling import Scale
from dashboard.detection.segmentation import Floats

SHORT_HISTORY = 29  # points; from one more on a history shows its wander over ten of them


def first_starts(values: Floats) -> list[int]:
    """The starts in the baseline of a longer history (n,), in which no level is looked for otherwise."""
    found = clear_starts(values[:SHORT_HISTORY], CLEAR_AND_LASTING)
    return [start for start in found if start < ALARM.baseline]


def with_first_starts(first: Sequence[int], found: Sequence[int]) -> list[int]:
    """The starts that were `found`, and the `first` that aren't the same as one of those."""
    return sorted([*found, *(b for b in first if all(abs(b - at) >= CLEAR.after for at in found))])


def clear_starts(values: Floats, rule: ShortRule = CLEAR) -> list[int]:
    """The indices at which new levels start that stand out clearly, for values (n,) of a short history."""
    if len(values) < rule.before + rule.after:
        return []
    scaled = Scale.fit(values).apply(values)
    least = max(rounding_noise(scaled), LEAST_NOISE)
    # So few numbers are added sooner than an array is made.
    points = (scaled - fast_median(scaled)).tolist()
    n, shortest = len(points), min(rule.after, CLEAR.after)
    starts = split_levels(points, 0, n, shortest)

    def stands_out(a: int, b: int, c: int) -> bool:
        # The newest points may be those of another level, which are still too few to tell.
        ends = range(c, c - CLEAR.after, -1) if c == n else (c,)
        return any(is_clear(points[a:b], points[b:end], least, rule) for end in ends)

    def explained(levels: tuple[int, int, int]) -> float:
        a, b, c = levels
        return explained_squares(points[a:b], points[b:c])

    while True:
        weakest_first = sorted(neighbouring_levels(starts, n), key=explained)
        unclear = next((levels for levels in weakest_first if not stands_out(*levels)), None)
        if unclear is None:
            return starts
        # Its two levels are one now, which may make a step at either end of it clear.
        starts.remove(unclear[1])


def split_levels(points: Sequence[float], begin: int, end: int, shortest: int) -> list[int]:
    """Starts that divide the points [begin, end) again and again where two levels fit best, ascending.

    No level is shorter than `shortest`.
    """
    if end - begin < 2 * shortest:
        return []
    total, before = sum(points[begin:end]), sum(points[begin : begin + shortest])
    best, at = -1.0, begin
    for start in range(begin + shortest, end - shortest + 1):
        explained = before**2 / (start - begin) + (total - before) ** 2 / (end - start)
        if explained > best:
            best, at = explained, start
        before += points[start]
    sides = (split_levels(points, *side, shortest) for side in ((begin, at), (at, end)))
    return sorted([at, *chain(*sides)])


def explained_squares(before: Sequence[float], after: Sequence[float]) -> float:
    """The squares that two levels of points (m,) and (n,) explain more than one."""
    m, n = len(before), len(after)
    return (sum(after) / n - sum(before) / m) ** 2 * m * n / (m + n)


def is_clear(before: Sequence[float], after: Sequence[float], least: float, rule: ShortRule) -> bool:
    """Whether a step from points (m,) to points (n,) stands out, and a straight line fits much worse.

    All points scatter as those of the level that scatters more, and no less than the `least` noise.
    """
    m, n = len(before), len(after)
    if m < rule.before or n < rule.after:
        return False
    level, level_after = sum(before) / m, sum(after) / n
    squares = sum((value - level) ** 2 for value in before)
    squares_after = sum((value - level_after) ** 2 for value in after)
    variance = max(squares / (m - 1), squares_after / (n - 1), least**2)
    error = math.sqrt(variance * (1 / m + 1 / n))
    if abs(level_after - level) < clear_distance(rule.chance, m + n - 2) * error:
        return False
    return squares_of_line([*before, *after]) >= rule.over_line * (squares + squares_after)


@lru_cache(maxsize=256)
def clear_distance(chance: float, freedom: int) -> float:
    """How many standard errors high a step is, by `chance`, with so many degrees of freedom."""
    return student_quantile(1 - chance, freedom)


def squares_of_line(points: Sequence[float]) -> float:
    """The squares that the best straight line through points (n,) leaves."""
    n, middle = len(points), (len(points) - 1) / 2
    level = sum(points) / n
    rise = sum((k - middle) * value for k, value in enumerate(points)) / ((n**3 - n) / 12)
    return sum((value - level - rise * (k - middle)) ** 2 for k, value in enumerate(points))
