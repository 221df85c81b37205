"""`steps_of_parts`: the steps of a series that only its parts show. Phases are the parts of a training step.

A part has its own noise, the whole has that of all parts: what one part loses can be many of its own noises
and less than one of the whole's. So the parts say that there is a step, where, and how much of the whole it
is. What one part lost and another gained at the same place is only a move: their sum is what counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dashboard.detection import doubts
from dashboard.detection.identity import same_change, same_place
from dashboard.detection.judgement import direction_of, judge
from dashboard.detection.levels import LEVEL_WINDOW
from dashboard.detection.readings import untainted
from dashboard.detection.relevance import EFFECT_FLOORS, exceeds
from dashboard.detection.types import Change, Series

# The whole's effect floor is high in short histories, where its noise is unknown; that of its parts is not.
PART_OF_FLOOR = 0.5
# Points to give or take. Fewer than where a step is found again later: these were all found in the same runs.
BESIDE = 1


@dataclass(frozen=True, slots=True)
class Step:
    """A step of one part."""

    part: str
    change: Change

    @property
    def delta(self) -> float:
        return self.change.after - self.change.before


def steps_of_parts(
    whole: Series, parts: Mapping[str, Series], known: Collection[int] = (), found: Sequence[Change] = ()
) -> list[Change]:
    """The changes of the whole that its parts show and that aren't among those `found` in itself; in order.

    All series have the same n points, in one unit; where a run lacks a part, its point there is tainted.
    `known` is what `judge` means by it, for the parts too. A change's levels, ratio and interval are the
    whole's level before and what the parts add to it; its doubt says which parts show it.
    Raises ValueError for a value that isn't finite.
    """
    steps = [Step(name, change) for name, part in parts.items() for change in judge(part, known)]
    shown: list[Change] = []
    for near in together(steps):
        change = of_whole(whole, near, [*found, *shown])
        if change and not any(same_change(change, other, BESIDE) for other in found):
            shown.append(change)
    return shown


def together(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """The steps that lie at one place, as far as noise lets it be known."""
    near: list[Step] = []
    for step in sorted(steps, key=lambda step: (step.change.index, step.part)):
        if near and not same_place(near[-1].change, step.change, BESIDE):
            yield near
            near = []
        near.append(step)
    if near:
        yield near


def of_whole(whole: Series, steps: Sequence[Step], others: Sequence[Change]) -> Change | None:
    """What the parts' steps at one place are for the whole, between its other changes.

    None where that isn't relevant.
    """
    delta = sum(step.delta for step in steps)
    largest = max(steps, key=lambda step: step.delta * np.sign(delta))
    main = largest.change
    kept = [i for i in untainted(whole.points) if i < main.index]
    start = max((one.index for one in others if one.index <= main.index), default=0)
    level = [whole.points[i].value for i in kept if i >= start][-LEVEL_WINDOW:]
    before = float(np.median(level)) if level else 0.0
    effect = EFFECT_FLOORS[whole.kind]
    floor = max(PART_OF_FLOOR * effect.at(len(untainted(whole.points))), effect.long)
    if before <= 0 or not exceeds(1 + delta / before, floor):
        return None
    # How uncertain the largest step is; what the others add is small beside it.
    doubtful = (largest.delta * (end - main.ratio) / (main.ratio - 1) for end in (main.low, main.high))
    low, high = sorted(1 + (delta + more) / before for more in doubtful)
    shown = sorted(step.part for step in steps if step.delta * delta > 0)
    return Change(
        index=main.index,
        before=before,
        after=before + delta,
        ratio=1 + delta / before,
        low=low,
        high=high,
        direction=direction_of(delta, whole.better),
        confidence=main.confidence,
        earliest=main.earliest,
        latest=main.latest,
        doubts=(
            doubts.IN_PARTS.format(parts=", ".join(shown)),
            *doubts.of_place(whole.points, kept[-1], main.index),
        ),
    )
