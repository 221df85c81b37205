"""How large planted changes come out on this machine, and how long its window has to be for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .. import calibration
from ..changes.plants import KEPT, PICTURE_BYTES
from ..edits import Tree

WINDOW_SECONDS = 1.5
"""What the measured window of a repetition takes, on the average of the history's commits."""

WARMUP_STEPS = 300
LEAST_STEPS, MOST_STEPS = 500, 4000


@dataclass(frozen=True)
class Knob:
    """The number in a planted change that sets its size; `growth` is the share that was measured for it."""

    number: int
    growth: float


def steps(step: float, growths: Sequence[float], window: float = WINDOW_SECONDS) -> int:
    """How many steps the measured window has, so that it takes so many seconds on the average.

    `step` is the time of one at the first commit, `growths` by how much each later commit changes it.
    """
    level = total = step
    for growth in growths:
        level *= 1 + growth
        total += level
    wanted = round(window / (total / (len(growths) + 1)) / 10) * 10
    return min(max(wanted, LEAST_STEPS), MOST_STEPS)


def size_pictures(tree: Tree, growth: float, steps: int, say: Callable[[str], None]) -> Knob:
    """How many pictures make a run's peak memory grow by this share."""
    peak = calibration.peak_memory(tree, WARMUP_STEPS + steps)
    number = min(round(growth * peak / PICTURE_BYTES), KEPT.most)
    found = Knob(number, number * PICTURE_BYTES / peak)
    say(f"a run peaks at {peak / 1e6:.0f} MB; keeping {number} pictures makes it {100 * found.growth:+.0f} %")
    return found
