"""What every game has in common: how it is seen, how it is played, and what a decision leads to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from arguments import Args
from numpy.typing import NDArray

FRAMES = 4
"""Frames of the emulator in one decision."""

STACK = 4
"""Pictures that the network sees at once."""

ACTIONS = 9
"""On the Atari: stand, and the eight directions of the stick; on the NES see side_scroller.py."""

WAITS = 30
"""A game begins with up to so many frames in which nothing is done."""

Pictures = NDArray[np.uint8]


class Result(NamedTuple):
    """What one decision of every game led to: what is seen next, rewards, ends, and the distance gained."""

    views: Pictures
    rewards: NDArray[np.float32]
    ended: NDArray[np.bool_]
    advances: NDArray[np.float32]


def size_of_picture(args: Args) -> tuple[int, int]:
    """Rows and columns of what the network sees."""
    return (42, 40) if args.small else (52, 53)
