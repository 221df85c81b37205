"""The levels of an exact counter, which may vary between a few values on the same code.

Any new value is a level at its first point. A value to which a counter has come lately, and which it has left
again, tells nothing of the code: it is a level once it stays.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from dashboard.detection.segmentation import Floats

# So many points before one show whether a counter comes and goes.
RECENT_POINTS = 40
# What comes back is a level once it stays for so many points.
POINTS_TO_STAY = 10
FEWEST_JUMPS = 3  # there, back, and there again
# So many values are tried as the level before a cut.
MOST_LEVELS = 4


def points_of_levels(values: Floats, known: Collection[int] | None = None) -> NDArray[np.intp]:
    """For each of values (n,) the index of a point of the level that stands there.

    `known`: of values before which there were others, the places at which changes were reported. What was
    there before isn't seen any more: the level at the cut is the one by which what is known is found again.
    """
    if np.count_nonzero(np.diff(values)) < FEWEST_JUMPS:
        return np.arange(len(values))
    if known is None:
        return follow_level(values, 0)
    found = [follow_level(values, level, known) for level in levels_at_cut(values)]
    return min(found, key=lambda level_points: differences_to_known(values[level_points], known))


def levels_at_cut(values: Floats) -> list[int]:
    """Points of the values near the cut, of those that are there most often first."""
    _, first, count = np.unique(values[:RECENT_POINTS], return_index=True, return_counts=True)
    return [int(at) for at in first[np.argsort(-count, kind="stable")[:MOST_LEVELS]]]


def differences_to_known(levels: Floats, known: Collection[int]) -> int:
    """How many changes are found otherwise than they are known, near the cut none."""
    found = set((np.flatnonzero(np.diff(levels)) + 1).tolist())
    return sum(at >= RECENT_POINTS for at in found.symmetric_difference(known))


def follow_level(values: Floats, level: int, known: Collection[int] | None = None) -> NDArray[np.intp]:
    """`points_of_levels`, where the level at the first point is that of point `level`."""
    level_points: NDArray[np.intp] = np.arange(len(values))
    came = 0
    for at in range(len(values)):
        if values[at] == values[level]:
            level_points[at] = level
            continue
        if at and values[at] != values[at - 1]:
            came = at
        # Near a cut nobody sees any more whether it had come lately.
        is_past_known = known is None or came >= RECENT_POINTS or came in known
        if at - came + 1 >= POINTS_TO_STAY or (is_past_known and not has_come_before(values, came)):
            level = came
            level_points[came:at] = level
        level_points[at] = level
    return level_points


def has_come_before(values: Floats, at: int) -> bool:
    """True where a counter moved to the value at this point before, in the same direction, and left it."""
    near = values[max(at - RECENT_POINTS, 0) : at + 1]
    directions = np.sign(np.diff(near))
    before = (near[1:-1] == near[-1]) & (directions[:-1] == directions[-1])
    return bool(before.any())


def varies_near(varying: NDArray[np.intp], at: int) -> bool:
    """True where some of these points, which have another value than their level, are near one."""
    return bool((np.abs(varying - at) <= RECENT_POINTS).any())
