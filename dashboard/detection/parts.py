"""`steps_of_parts`: the steps of a series that only its parts show. Phases are the parts of a training step.

A part has its own noise, the whole has that of all parts: what one part loses can be many of its own noises
and less than one of the whole's. So the parts say that there is a step, where, and how much of the whole it
is. What one part lost and another gained at the same location is only a move: their sum is what counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dashboard.detection import doubts
from dashboard.detection.identity import same_change, same_location
from dashboard.detection.judgement import judge_all, step_direction
from dashboard.detection.levels import LEVEL_WINDOW
from dashboard.detection.medians import median
from dashboard.detection.readings import untainted_positions
from dashboard.detection.relevance import EFFECT_FLOORS, exceeds_floor
from dashboard.detection.types import Change, Doubt, Series

# The whole's effect floor is high in short histories, where its noise is unknown; that of its parts is not.
PART_OF_FLOOR = 0.5
# Points to give or take. Fewer than where a step is found again later: these were all found in the same runs.
BESIDE = 1
# A point with so much of a step at most is surely one of the level before.
APART = 0.25


@dataclass(frozen=True, slots=True)
class PartStep:
    """A step of one part."""

    part: str
    change: Change
    series: Series

    def share(self, index: int) -> float:
        """How much of the step the point at `index` has: 0 of the level before, 1 of the one after."""
        value, before, after = self.series.points[index].value, self.change.before, self.change.after
        if min(value, before, after) > 0:
            value, before, after = (float(np.log(size)) for size in (value, before, after))
        # Levels are medians, a step is judged by the best repetitions: they may be equal, and tell nothing.
        if after == before:
            return 0.5
        return (value - before) / (after - before)

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
    judged = judge_all(list(parts.values()), known)
    steps = [
        PartStep(name, change, part)
        for (name, part), changes in zip(parts.items(), judged, strict=True)
        for change in changes
    ]
    locations = list(group_by_location(steps))
    mains = [largest_step(near) for near in locations]
    shown: list[Change] = []
    for near, main in zip(locations, mains, strict=True):
        change = change_of_whole(whole, near, [*found, *shown])
        if change and not any(is_already_found(change, main, other, mains) for other in found):
            shown.append(change)
    return shown


def is_already_found(change: Change, main: PartStep, other: Change, mains: Sequence[PartStep]) -> bool:
    """Whether a change that was found in the whole is this one as well.

    Not where another step of a part lies nearer to that one, and surely apart: two steps close to each other
    are one for the whole, whose runs at other hours may lie further apart.
    """
    if not same_change(change, other, BESIDE):
        return False
    distance = abs(main.change.index - other.index)
    return not any(
        abs(step.change.index - other.index) < distance
        and step.change.direction == main.change.direction
        and are_distinct(step, main)
        for step in mains
    )


def are_distinct(left: PartStep, right: PartStep) -> bool:
    """Whether the runs between two steps surely show the first and not yet the second.

    A cause meets all parts in the same run, and what disturbs a run makes no part as fast as before its step.
    """
    first, second = sorted((left, right), key=lambda step: step.change.index)
    between = [
        index
        for index in range(first.change.index, second.change.index)
        if not (first.series.points[index].tainted or second.series.points[index].tainted)
    ]
    return bool(between) and all(
        first.share(index) >= 1 - APART and second.share(index) <= APART for index in between
    )


def group_by_location(steps: Sequence[PartStep]) -> Iterator[list[PartStep]]:
    """The steps that lie at one location, as far as noise lets it be known."""
    near: list[PartStep] = []
    for step in sorted(steps, key=lambda step: (step.change.index, step.part)):
        if near and (not same_location(near[-1].change, step.change, BESIDE) or are_distinct(near[-1], step)):
            yield near
            near = []
        near.append(step)
    if near:
        yield near


def largest_step(steps: Sequence[PartStep]) -> PartStep:
    """The step that counts most for the whole, in the direction of their sum."""
    sign = np.sign(sum(step.delta for step in steps))
    return max(steps, key=lambda step: step.delta * sign)


def change_of_whole(whole: Series, steps: Sequence[PartStep], others: Sequence[Change]) -> Change | None:
    """What the parts' steps at one location are for the whole, between its other changes.

    None where that isn't relevant.
    """
    delta = sum(step.delta for step in steps)
    most = largest_step(steps)
    main = most.change
    kept = [i for i in untainted_positions(whole.points) if i < main.index]
    start = max((change.index for change in others if change.index <= main.index), default=0)
    level = [whole.points[i].value for i in kept if i >= start][-LEVEL_WINDOW:]
    before = median(np.array(level)) if level else 0.0
    effect = EFFECT_FLOORS[whole.kind]
    floor = max(PART_OF_FLOOR * effect.at(len(untainted_positions(whole.points))), effect.long)
    if before <= 0 or not exceeds_floor(1 + delta / before, floor):
        return None
    # How uncertain the largest step is; what the others add is small beside it.
    doubtful = (most.delta * (end - main.ratio) / (main.ratio - 1) for end in (main.low, main.high))
    low, high = sorted(1 + (delta + more) / before for more in doubtful)
    shown = sorted(step.part for step in steps if step.delta * delta > 0)
    return Change(
        index=main.index,
        before=before,
        after=before + delta,
        ratio=1 + delta / before,
        low=low,
        high=high,
        direction=step_direction(delta, whole.better),
        confidence=main.confidence,
        earliest=main.earliest,
        latest=main.latest,
        doubts=(
            Doubt(doubts.IN_PARTS, {"parts": shown}),
            *doubts.location_doubts(kept[-1], main.index),
        ),
    )
