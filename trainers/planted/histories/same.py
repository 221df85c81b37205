"""A history in which nothing changes but comments, with one slower commit among them if asked for."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import calibration
from ..changes.comments import comment_changes
from ..changes.plants import SMOOTHED
from ..edits import Tree, base_tree, set_steps
from ..repository import Repository
from . import plan, sizing
from .demo import FIRST

GROWTH = 0.10
FEWEST_COMMITS = 12
"""Enough for a level on both sides of the slower commit."""


def create_history(
    folder: Path, seed: int, say: Callable[[str], None], commits: int, slower: bool
) -> dict[str, Any]:
    """Make the repository; every commit of it is measured."""
    chance = random.Random(seed)
    tree: Tree = base_tree()
    step = calibration.race_programs(tree, tree, calibration.SECONDS)[0]
    tree = set_steps(tree, sizing.steps(step, [0.0] * (commits - 1)))
    place, knob = -1, sizing.Knob(0, 0.0)
    if slower:
        place = chance.randrange(commits // 3, 2 * commits // 3)
        knob = sizing.Knob(*calibration.choose_knob(SMOOTHED, tree, GROWTH, say))
    repository = Repository(folder)
    made = [repository.commit(FIRST, tree)]
    following = comment_changes()
    for number in range(1, commits):
        change = SMOOTHED.change(knob.number) if number == place else next(following)
        tree = change.apply(tree)
        made.append(repository.commit(change.subject, tree))
    planted = [plan.describe_planted(SMOOTHED, made[place], knob.growth)] if slower else []
    return {"commits": made, "measured": made, "planted": planted}
