"""A larger history with what makes histories hard: two culprits in one range, a commit that doesn't run, a
merge, a regression repaired later, a new version of a package, a benchmark that is defined anew.

Places are fixed, so that each of these is where it is hard; sizes and neutral commits are drawn.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import calibration
from ..changes.accidents import BROKEN, MENDED, REDEFINED, revert_change
from ..changes.documents import DOCUMENTS
from ..changes.packages import REQUIRED, UPDATED
from ..changes.plants import KEPT, LISTED, RANKED, SMOOTHED, SUMMED, Plant
from ..changes.refactorings import REFACTORINGS
from ..changes.renaming import RENAMING
from ..edits import Change, Tree, base_tree, set_steps
from ..repository import MAIN, Repository
from . import plan, sizing
from .demo import FIRST

NEUTRAL, DOCUMENT, MERGE, REVERT = "neutral", "document", "merge", "revert"
BRANCH = "pictures"

# What each commit does, and whether it is measured at first.
LINE: tuple[tuple[str | Plant | Change, bool], ...] = (
    *((NEUTRAL, measured) for measured in (False, True) * 3),
    *((NEUTRAL, False), (BROKEN, False), (MENDED, False), (LISTED, False), (NEUTRAL, True), (NEUTRAL, True)),
    *((NEUTRAL, False), (RANKED, False), (NEUTRAL, False), (SUMMED, False), (NEUTRAL, True), (NEUTRAL, True)),
    *((DOCUMENT, False), (MERGE, False), (NEUTRAL, True), (NEUTRAL, True)),
    # Documents alone, so that what is taken back still stands as it was. Three points make a level also
    # where the levels around it are alike: two could be outliers.
    *((SMOOTHED, False), (DOCUMENT, True), (DOCUMENT, True), (DOCUMENT, True), (REVERT, True)),
    *((NEUTRAL, True), (NEUTRAL, True), (UPDATED, False), (NEUTRAL, True), (NEUTRAL, False), (NEUTRAL, True)),
    *((REDEFINED, False), (NEUTRAL, True), (NEUTRAL, False), (NEUTRAL, True)),
)
BESIDE_MAIN = (DOCUMENT, KEPT, DOCUMENT)
COMMITS = 1 + len(LINE) + len(BESIDE_MAIN)

TIMED = (LISTED, RANKED, SUMMED, SMOOTHED, UPDATED)
GROWTH = (0.30, 0.42)
GROWTH_OF_MEMORY = (0.23, 0.27)

Knobs = Mapping[str, sizing.Knob]


@dataclass(frozen=True)
class Step:
    """One commit: on main, or (`beside`) on the branch that is merged."""

    what: str | Plant | Change
    change: Change
    measured: bool
    beside: bool = False


def size_changes(seed: int, say: Callable[[str], None]) -> tuple[Tree, Knobs]:
    """The first commit with its window, and the knobs of the planted changes, by the plant's subject."""
    chance = random.Random(seed)
    start: Tree = REQUIRED.apply(base_tree())
    tree, knobs = start, {}
    for plant in TIMED:
        found = sizing.Knob(*calibration.choose_knob(plant, tree, chance.uniform(*GROWTH), say))
        knobs[plant.subject] = found
        if plant is not SMOOTHED:
            tree = plant.apply(tree, found.number)
    step = calibration.race_programs(start, start, calibration.SECONDS)[0]
    steps = sizing.steps(step, list(step_growths(knobs)))
    start = set_steps(start, steps)
    knobs[KEPT.subject] = sizing.size_pictures(start, chance.uniform(*GROWTH_OF_MEMORY), steps, say)
    return start, knobs


def step_growths(knobs: Knobs) -> Iterator[float]:
    """By how much each commit of main changes the time of a step."""
    for what, _ in LINE:
        if what == REVERT:
            yield 1 / (1 + knobs[SMOOTHED.subject].growth) - 1
        else:
            yield knobs[what.subject].growth if isinstance(what, Plant) else 0.0


def steps_of(knobs: Knobs, chance: random.Random) -> Iterator[Step]:
    """Every commit after the first, in the order in which they are made."""
    documents = list(DOCUMENTS)
    chance.shuffle(documents)
    needed = [what for what, _ in LINE].count(NEUTRAL) - len(RENAMING) - len(REFACTORINGS)
    of_files = sum(what == DOCUMENT for what in (*BESIDE_MAIN, *(what for what, _ in LINE)))
    neutral = [*RENAMING, *REFACTORINGS, *documents[of_files : of_files + needed]]
    chance.shuffle(neutral)

    def change_of(what: str | Plant | Change) -> Change:
        if isinstance(what, Plant):
            return what.change(knobs[what.subject].number)
        if isinstance(what, Change):
            return what
        if what == REVERT:
            return revert_change(SMOOTHED.change(knobs[SMOOTHED.subject].number))
        return (documents if what == DOCUMENT else neutral).pop(0)

    for number, (what, measured) in enumerate(LINE):
        if number + 1 < len(LINE) and LINE[number + 1][0] == MERGE:
            yield from (Step(what, change_of(what), False, beside=True) for what in BESIDE_MAIN)
        if what == MERGE:
            yield Step(MERGE, Change(MERGE, ()), measured)
        else:
            yield Step(what, change_of(what), measured)


def create_history(folder: Path, seed: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Make the repository; return its commits, which of them are measured, and what was planted."""
    start, knobs = size_changes(seed, say)
    steps = list(steps_of(knobs, random.Random(seed)))
    repository = Repository(folder)
    tree, beside = start, start
    made = [repository.commit(FIRST, tree)]
    for previous, step in zip((None, *steps), steps, strict=False):
        if step.beside:
            if previous is None or not previous.beside:
                repository.branch(BRANCH)
                beside = tree
            beside = step.change.apply(beside)
            made.append(repository.commit(step.change.subject, beside))
            continue
        if previous is not None and previous.beside:
            repository.switch(MAIN)
        if step.what == MERGE:
            made.append(repository.merge(BRANCH))
            tree = merged_tree(steps, tree)
            continue
        tree = step.change.apply(tree)
        made.append(repository.commit(step.change.subject, tree))
    of_step = dict(zip([step.what for step in steps], made[1:], strict=True))
    return {
        "commits": made,
        "measured": [made[0], *(sha for sha, step in zip(made[1:], steps, strict=True) if step.measured)],
        "planted": describe_all_planted(of_step, knobs),
    }


def merged_tree(steps: Sequence[Step], tree: Tree) -> Tree:
    """Main's tree with what was committed beside it."""
    for step in steps:
        if step.beside:
            tree = step.change.apply(tree)
    return tree


def describe_all_planted(commit_of: Mapping[str | Plant | Change, str], knobs: Knobs) -> list[dict[str, Any]]:
    """What was planted, as the JSON tells it."""

    def culprit(plant: Plant, event: str, **more: str) -> dict[str, Any]:
        return plan.describe_planted(
            plant, commit_of[plant], knobs[plant.subject].growth, event=event, **more
        )

    return [
        {"commit": commit_of[BROKEN], "kind": "broken", "event": "doesn't run"},
        culprit(LISTED, "after a commit that doesn't run"),
        culprit(RANKED, "first of two in one range"),
        culprit(SUMMED, "second of two in one range"),
        culprit(KEPT, "came by a merge", merge=commit_of[MERGE]),
        culprit(SMOOTHED, "repaired later", repaired_by=commit_of[REVERT]),
        culprit(UPDATED, "a package's new version", cause="dependency"),
        {"commit": commit_of[REDEFINED], "kind": "definition", "event": "benchmark defined anew"},
    ]
