"""The demo's commits: neutral ones, and the planted ones with knobs that were measured."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import calibration
from ..changes.documents import DOCUMENTS
from ..changes.plants import KEPT, VECTORIZED
from ..changes.refactorings import REFACTORINGS
from ..changes.renaming import RENAMING
from ..edits import Tree, base_tree, set_steps, shorten_runs
from ..repository import create_repository
from . import plan, sizing

FIRST = "Train a DQN on Snake"
WINDOW_SECONDS = 1.0
OTHERS = (*REFACTORINGS, *DOCUMENTS)


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


def create_history(folder: Path, seed: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Make the repository; return its commits, which of them are measured, and what was planted."""
    history = build_history(seed, say)
    commits = create_repository(folder, history.commits)
    return {
        "commits": commits,
        "measured": [commits[index] for index in plan.measured_indices()],
        "planted": [
            plan.describe_planted(entry.planned.plant, commits[entry.planned.position], entry.growth)
            for entry in history.planted
        ],
    }


def build_history(seed: int, say: Callable[[str], None]) -> History:
    """Draw a history from the seed and size its planted changes for this machine; `say` tells progress."""
    chance = random.Random(seed)
    start = base_tree()
    step, saved = calibration.race_programs(start, VECTORIZED.apply(start, 0), calibration.SECONDS)
    say(f"a step takes {1e6 * step:.0f} us; working the targets out at once makes it {100 * saved:+.0f} %")
    planned = plan.draw_plan(chance, -saved)
    sized = size_changes(planned, say)
    growth_at = {entry.planned.position: entry.growth for entry in sized}
    growths = [growth_at.get(position, 0.0) for position in range(1, plan.COMMITS)]
    steps = sizing.steps(step, growths, WINDOW_SECONDS)
    start = shorten_runs(set_steps(start, steps))
    kept = next(entry for entry in planned if entry.plant is KEPT)
    memory = sizing.size_pictures(start, kept.size, steps, say)
    sized.append(Sized(kept, memory.number, memory.growth))
    sized.sort(key=lambda entry: entry.planned.position)
    return History(lay_out(start, sized, chance), sized)


def size_changes(planned: Sequence[plan.Planned], say: Callable[[str], None]) -> list[Sized]:
    """Choose the knobs of the changes of step time, each beside the code that it will meet."""
    tree: Tree = base_tree()
    sized = []
    for entry in planned:
        if entry.plant is KEPT:
            continue
        if entry.plant is VECTORIZED:
            knob, growth = (
                0,
                calibration.race_programs(tree, VECTORIZED.apply(tree, 0), calibration.SECONDS)[1],
            )
        else:
            knob, growth = calibration.choose_knob(entry.plant, tree, entry.size, say)
        tree = entry.plant.apply(tree, knob)
        sized.append(Sized(entry, knob, growth))
    return sized


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
