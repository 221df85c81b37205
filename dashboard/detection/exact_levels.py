"""The levels of an exact counter, which may vary between a few values on the same code.

Any new value is a level at its first point. A value to which a counter has come lately, and which it has left
again, tells nothing of the code: it is a level once it stays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dashboard.detection.segmentation import Floats

# So many points before one show whether a counter comes and goes.
LATELY = 40
# What comes back is a level once it stays for so many points.
STAYS = 10
FEWEST_JUMPS = 3  # there, back, and there again


def standing_points(values: Floats) -> NDArray[np.intp]:
    """For each of values (n,) the index of the point at which the level began that stands there."""
    standing: NDArray[np.intp] = np.arange(len(values))
    if np.count_nonzero(np.diff(values)) < FEWEST_JUMPS:
        return standing
    level = came = 0
    for at in range(len(values)):
        if values[at] == values[level]:
            standing[at] = level
            continue
        if values[at] != values[at - 1]:
            came = at
        if at - came + 1 >= STAYS or not has_come_lately(values, came):
            level = came
            standing[came:at] = level
        standing[at] = level
    return standing


def has_come_lately(values: Floats, at: int) -> bool:
    """True where a counter moved to the value at this point before, in the same direction, and left it."""
    near = values[max(at - LATELY, 0) : at + 1]
    directions = np.sign(np.diff(near))
    before = (near[1:-1] == near[-1]) & (directions[:-1] == directions[-1])
    return bool(before.any())


def varies_near(varying: NDArray[np.intp], at: int) -> bool:
    """True where some of these points, which have another value than their level, are near one."""
    return bool((np.abs(varying - at) <= LATELY).any())
