"""The demo's commits: neutral ones, and the planted ones with knobs that were measured."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .. import calibration
from ..changes.documents import DOCUMENTS
from ..changes.plants import KEPT, PICTURE_BYTES, VECTORIZED
from ..changes.refactorings import REFACTORINGS
from ..changes.renaming import RENAMING
from ..edits import Tree, base_tree, set_steps
from . import plan

FIRST = "Train a DQN on Snake"
OTHERS = (*REFACTORINGS, *DOCUMENTS)

WINDOW_SECONDS = 1.5
"""What the measured window of a repetition takes, on the average of the history's commits."""

WARMUP_STEPS = 300
LEAST_STEPS, MOST_STEPS = 500, 4000


@dataclass(frozen=True)
class Sized:
    """A planned change with its knob; `growth` is the share that was measured for it."""

    planned: plan.Planned
    knob: int
    growth: float


@dataclass(frozen=True)
class History:
    """Every commit's subject and tree, and the planted ones by their index."""

    commits: Sequence[tuple[str, Tree]]
    planted: Sequence[Sized]


def build(seed: int, say: Callable[[str], None]) -> History:
    """Draw a history from the seed and size its planted changes for this machine; `say` tells progress."""
    chance = random.Random(seed)
    start = base_tree()
    step, saved = calibration.race(start, VECTORIZED.apply(start, 0), calibration.SECONDS)
    say(f"a step takes {1e6 * step:.0f} us; working the targets out at once makes it {100 * saved:+.0f} %")
    planned = plan.draw(chance, -saved)
    sized = [entry for entry in _size(planned, say) if entry.planned.plant is not KEPT]
    steps = _steps(step, sized)
    start = set_steps(start, steps)
    kept = next(entry for entry in planned if entry.plant is KEPT)
    sized.append(_size_memory(start, kept, steps, say))
    sized.sort(key=lambda entry: entry.planned.position)
    return History(lay_out(start, sized, chance), sized)


def _size(planned: Sequence[plan.Planned], say: Callable[[str], None]) -> list[Sized]:
    """Choose the knobs of the changes of step time, each beside the code that it will meet."""
    tree: Tree = base_tree()
    sized = []
    for entry in planned:
        if entry.plant is KEPT:
            continue
        if entry.plant is VECTORIZED:
            knob, growth = 0, calibration.race(tree, VECTORIZED.apply(tree, 0), calibration.SECONDS)[1]
        else:
            knob, growth = calibration.choose(entry.plant, tree, entry.size, say)
        tree = entry.plant.apply(tree, knob)
        sized.append(Sized(entry, knob, growth))
    return sized


def _steps(step: float, sized: Sequence[Sized]) -> int:
    """How many steps the measured window has, so that it takes WINDOW_SECONDS on the average."""
    level, total = step, 0.0
    for position in range(plan.COMMITS):
        level *= 1 + next((entry.growth for entry in sized if entry.planned.position == position), 0.0)
        total += level
    steps = round(WINDOW_SECONDS / (total / plan.COMMITS) / 10) * 10
    return min(max(steps, LEAST_STEPS), MOST_STEPS)


def _size_memory(tree: Tree, entry: plan.Planned, steps: int, say: Callable[[str], None]) -> Sized:
    peak = calibration.peak_memory(tree, WARMUP_STEPS + steps)
    knob = min(round(entry.size * peak / PICTURE_BYTES), KEPT.most)
    growth = knob * PICTURE_BYTES / peak
    say(f"a run peaks at {peak / 1e6:.0f} MB; keeping {knob} pictures makes it {100 * growth:+.0f} %")
    return Sized(entry, knob, growth)


def lay_out(tree: Tree, sized: Sequence[Sized], chance: random.Random) -> list[tuple[str, Tree]]:
    """Put the planted changes at their places and drawn neutral ones into all others."""
    by_position = {entry.planned.position: entry for entry in sized}
    needed = plan.COMMITS - len(sized) - 1 - len(RENAMING)
    neutral = [*RENAMING, *chance.sample(OTHERS, needed)]
    chance.shuffle(neutral)
    commits = [(FIRST, tree)]
    for position in range(1, plan.COMMITS):
        planted = by_position.get(position)
        change = planted.planned.plant.change(planted.knob) if planted else neutral.pop()
        tree = change.apply(tree)
        commits.append((change.subject, tree))
    return commits
