"""`steps_of_parts`: the steps of a series that only its parts show. Phases are the parts of a training step.

A part has its own noise, the whole has that of all parts: what one part loses can be many of its own noises
and less than one of the whole's. So the parts say that there is a step, where, and how much of the whole it
is. What one part lost and another gained at the same location is only a move: their sum is what counts.

There are many parts, and each may look as if it stepped. So a step needs a p-value, once its part has a
history: that of the clearest part, paid for all of them (Bonferroni, which holds under any dependence), must
stay within the `risk` of a look. A hundred parts more raise no more false steps, they only ask for more.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dashboard.detection import doubts
from dashboard.detection.common_noise import without_common_noise
from dashboard.detection.identity import same_change, same_location
from dashboard.detection.judgement import FEWEST_POINTS, judge_readings, step_direction
from dashboard.detection.levels import LEVEL_WINDOW
from dashboard.detection.medians import fast_median
from dashboard.detection.noise import MEDIAN_EFFICIENCY, neighbour_noise, robust_deviation
from dashboard.detection.readings import Readings, prepare_readings, untainted_positions
from dashboard.detection.relevance import EFFECT_FLOORS, WANDER_POINTS, exceeds_floor
from dashboard.detection.scaling import safe_median
from dashboard.detection.step_p_value import step_p_value
from dashboard.detection.types import Change, Doubt, Series

# The whole's effect floor is high in short histories, where its noise is unknown; that of its parts is not.
PART_OF_FLOOR = 0.5
# What a step of parts has to cost of the whole, at least, to be worth an alert, where a risk may be taken.
LEAST_OF_WHOLE = 0.005
# More than this part of what moved isn't nothing that was lost, however uncertain it is.
LOST_SHARE = 0.5
# Standard errors of the whole's own levels that its step lies off what the parts say, at most.
CONTRADICTION_ERRORS = 4.0
# What other parts took back, where it makes up for a step: so much of it, and so many standard errors. Less
# of it tells nothing: parts are compared with their middle, which the step itself moves a little.
MADE_UP_SHARE, MADE_UP_ERRORS = 0.75, 2.0
# Points to give or take. Fewer than where a step is found again later: these were all found in the same runs.
SAME_PLACE_POINTS = 1
# A point with so much of a step at most is surely one of the level before.
MOST_SHARE_BEFORE = 0.25


@dataclass(frozen=True, slots=True)
class PartStep:
    """A step of one part. `p_value`: how likely such a step of any part is if nothing changed; None where too
    little is known."""

    part: str
    change: Change
    series: Series
    p_value: float | None = None

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

    @property
    def margin(self) -> float:
        """Half of the 95 % interval of the delta."""
        size = abs(self.change.ratio - 1)
        half = (self.change.high - self.change.low) / 2
        return abs(self.delta) * half / size if size else 0.0


def steps_of_parts(
    whole: Series,
    parts: Mapping[str, Series],
    known: Collection[int] = (),
    found: Sequence[Change] = (),
    risk: float = 0.0,
) -> list[Change]:
    """The changes of the whole that its parts show and that aren't among those `found` in itself; in order.

    All series have the same n points, in one unit; where a run lacks a part, its point there is tainted.
    `known` is what `judge_series` means by it, for the parts too. A change's levels, ratio and interval are
    the whole's level before and what the parts add to it; its doubt says which parts show it. One that is
    "moved" loses nothing: its doubt says from which parts to which, and how much of the whole.
    `risk` is the chance of a false step that this look may take: with it steps of less than the whole's
    effect floor and moves are reported too, and nothing of parts with long histories that is less certain.
    With 0 the effect floor decides alone.
    Raises ValueError for a value that isn't finite.
    """
    judged = dict(comparable_parts(whole, parts, risk))
    readings = [prepare_readings(part) for part in judged.values()]
    changes = judge_readings(list(judged.values()), readings, known)
    steps = [
        step
        for (name, part), of_part, found_there in zip(judged.items(), readings, changes, strict=True)
        for step in part_steps(name, part, of_part, found_there, known, len(parts))
    ]
    locations = list(group_by_location(steps))
    mains = [largest_step(near) for near in locations]
    shown: list[Change] = []
    for near, main in zip(locations, mains, strict=True):
        others = [*found, *shown]
        # What is known has been within the risk of a look before.
        is_known = any(abs(main.change.index - at) <= SAME_PLACE_POINTS for at in known)
        allowed = math.inf if risk and is_known else risk
        within = steps_beside(main.change.index, [*found, *(step.change for step in mains)], whole)
        change = move_in_whole(whole, near, others, allowed)
        change = change or change_of_whole(whole, near, others, allowed, within)
        if change and risk and change.direction != "moved" and is_made_up_for(near, judged, within):
            continue
        if change and not any(is_already_found(change, main, other, mains) for other in found):
            shown.append(change)
    return shown


def steps_beside(index: int, changes: Sequence[Change], whole: Series) -> tuple[int, int]:
    """The half-open range of points around a step up to the steps beside it: there the levels are its own."""
    places = [change.index for change in changes if change.index != index]
    return (
        max((place for place in places if place < index), default=0),
        min((place for place in places if place > index), default=len(whole.points)),
    )


def comparable_parts(whole: Series, parts: Mapping[str, Series], risk: float) -> Iterator[tuple[str, Series]]:
    """The parts as they are judged: where a risk may be taken, apart from what they all share, and down to
    what would be relevant for the whole."""
    kept = untainted_positions(whole.points)
    if not risk or len(kept) < WANDER_POINTS:
        yield from parts.items()
        return
    whole_level = safe_median(np.array([whole.points[i].value for i in kept]))
    usual = EFFECT_FLOORS["time"].at(len(kept))
    for name, part in without_common_noise(parts).items():
        values = np.array([point.value for point in part.points if not point.tainted])
        level = safe_median(values) if len(values) else 0.0
        floor = LEAST_OF_WHOLE * whole_level / level if level > 0 else usual
        yield name, replace(part, floor=min(usual, floor))


def part_steps(
    name: str,
    part: Series,
    readings: Readings,
    changes: Sequence[Change],
    known: Collection[int],
    count: int,
) -> Iterator[PartStep]:
    """The steps of one of `count` parts, each with its p-value after the last one that was reported.

    What wasn't reported belongs to the level before: it is as likely to be noise.
    """
    since = 0
    for change in changes:
        at = readings.kept.index(change.index)
        enough = at - since >= WANDER_POINTS
        p_value = min(1.0, count * step_p_value(readings.scaled, at, since)) if enough else None
        yield PartStep(name, change, part, p_value)
        if any(abs(change.index - place) <= SAME_PLACE_POINTS for place in known):
            since = at


def is_already_found(change: Change, main: PartStep, other: Change, mains: Sequence[PartStep]) -> bool:
    """Whether a change that was found in the whole is this one as well.

    Not where another step of a part lies nearer to that one, and surely apart: two steps close to each other
    are one for the whole, whose runs at other hours may lie further apart.
    """
    if change.direction == "moved":
        return same_location(change, other, SAME_PLACE_POINTS)
    if not same_change(change, other, SAME_PLACE_POINTS):
        return change.index == other.index
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
        first.share(index) >= 1 - MOST_SHARE_BEFORE and second.share(index) <= MOST_SHARE_BEFORE
        for index in between
    )


def group_by_location(steps: Sequence[PartStep]) -> Iterator[list[PartStep]]:
    """The steps that lie at one location, as far as noise lets it be known."""
    near: list[PartStep] = []
    for step in sorted(steps, key=lambda step: (step.change.index, step.part)):
        if near and (
            not same_location(near[-1].change, step.change, SAME_PLACE_POINTS) or are_distinct(near[-1], step)
        ):
            yield near
            near = []
        near.append(step)
    if near:
        yield near


def largest_step(steps: Sequence[PartStep]) -> PartStep:
    """The step that counts most for the whole, in the direction of their sum."""
    sign = np.sign(sum(step.delta for step in steps))
    return max(steps, key=lambda step: step.delta * sign)


def change_of_whole(
    whole: Series,
    steps: Sequence[PartStep],
    others: Sequence[Change],
    allowed: float,
    within: tuple[int, int],
) -> Change | None:
    """What the parts' steps at one location are for the whole, between its other changes.

    None where that isn't relevant, or small and less certain than is `allowed`.
    """
    delta = sum(step.delta for step in steps)
    most = largest_step(steps)
    main = most.change
    before, last_good = level_before(whole, main.index, others)
    shown = sorted(step.part for step in steps if step.delta * delta > 0)
    p_value = least_p_value(step for step in steps if step.delta * delta > 0)
    if before <= 0 or not is_relevant(whole, 1 + delta / before, p_value, allowed):
        return None
    if allowed > 0 and not agrees_with_whole(whole, main.index, delta, within):
        return None
    # How uncertain the largest step is; what the others add is small beside it.
    doubtful = (most.delta * (end - main.ratio) / (main.ratio - 1) for end in (main.low, main.high))
    low, high = sorted(1 + (delta + more) / before for more in doubtful)
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
            Doubt(doubts.IN_PARTS, {"parts": shown, **({} if p_value is None else {"p_value": p_value})}),
            *doubts.location_doubts(last_good, main.index),
        ),
    )


def level_before(whole: Series, index: int, others: Sequence[Change]) -> tuple[float, int]:
    """The whole's level before a step between its other changes, and the last untainted point of it."""
    kept = [i for i in untainted_positions(whole.points) if i < index]
    start = max((change.index for change in others if change.index <= index), default=0)
    level = [whole.points[i].value for i in kept if i >= start][-LEVEL_WINDOW:]
    return (fast_median(np.array(level)) if level else 0.0), (kept[-1] if kept else -1)


def least_p_value(steps: Iterable[PartStep]) -> float | None:
    """That of the clearest of these; None where too little is known of all."""
    return min((step.p_value for step in steps if step.p_value is not None), default=None)


def is_relevant(whole: Series, ratio: float, p_value: float | None, allowed: float) -> bool:
    """Whether a step of the whole that its parts show is relevant, and as certain as is `allowed`.

    Where nothing is allowed, or too little known for a p-value, only its size decides.
    """
    if allowed == math.inf or (p_value is not None and allowed > 0):
        return (p_value or 0.0) <= allowed and exceeds_floor(ratio, LEAST_OF_WHOLE)
    effect = EFFECT_FLOORS[whole.kind]
    floor = max(PART_OF_FLOOR * effect.at(len(untainted_positions(whole.points))), effect.long)
    return exceeds_floor(ratio, floor)


def is_made_up_for(steps: Sequence[PartStep], parts: Mapping[str, Series], within: tuple[int, int]) -> bool:
    """Whether the parts without a step of their own took most of it back, as far as is known: what moved
    from a large part to a small one stands out in the small one first."""
    delta, at = sum(step.delta for step in steps), largest_step(steps).change.index
    stepped = {step.part for step in steps}
    others = [levels_beside(part, at, within) for name, part in parts.items() if name not in stepped]
    shift = sum(shift for shift, _ in others)
    error = math.hypot(*(error for _, error in others))
    return shift * delta < 0 and abs(shift) >= max(MADE_UP_SHARE * abs(delta), MADE_UP_ERRORS * error)


def levels_beside(series: Series, index: int, within: tuple[int, int]) -> tuple[float, float]:
    """By how much a series is higher after a place than before it, and the standard error of that; both 0
    where one side has no untainted points. `within`: the half-open range of points that is looked at."""
    known = untainted_positions(series.points)
    kept = [i for i in known if within[0] <= i < within[1]]
    before, after = (
        np.array([series.points[i].value for i in side])
        for side in (
            [i for i in kept if i < index][-LEVEL_WINDOW:],
            [i for i in kept if i >= index][:LEVEL_WINDOW],
        )
    )
    if min(len(before), len(after)) == 0:
        return 0.0, 0.0
    # A level of few points between two steps doesn't say how noisy it is.
    few = len(before) < FEWEST_POINTS
    deviation = (
        neighbour_noise(np.array([series.points[i].value for i in known]))
        if few
        else robust_deviation(before)
    )
    error = deviation * MEDIAN_EFFICIENCY * math.sqrt(1 / len(before) + 1 / len(after))
    return fast_median(after) - fast_median(before), error


def agrees_with_whole(whole: Series, index: int, delta: float, within: tuple[int, int]) -> bool:
    """Whether the whole may have stepped by so much: it contradicts what other parts must have taken over."""
    seen, error = levels_beside(whole, index, within)
    return abs(seen - delta) <= max(CONTRADICTION_ERRORS * error, LOST_SHARE * abs(delta))


def move_in_whole(
    whole: Series, steps: Sequence[PartStep], others: Sequence[Change], allowed: float
) -> Change | None:
    """What moved from parts to others at one location, as a change that costs nothing; None where none did.

    Both what grew and what shrank must be as certain as is `allowed`, and their sum within its noise of 0.
    """
    grown, shrunk = ([step for step in steps if step.delta * sign > 0] for sign in (1, -1))
    if not grown or not shrunk:
        return None
    gained, lost = (sum(abs(step.delta) for step in side) for side in (grown, shrunk))
    moved, net = min(gained, lost), gained - lost
    main = largest_step(steps).change
    before, last_good = level_before(whole, main.index, others)
    margin = float(np.hypot.reduce([step.margin for step in steps]))
    p_values = [least_p_value(side) for side in (grown, shrunk)]
    certain = allowed == math.inf or all(p is not None and p <= allowed for p in p_values)
    if not certain or before <= 0 or not exceeds_floor(1 + moved / before, LEAST_OF_WHOLE):
        return None
    if abs(net) > min(margin, LOST_SHARE * moved):
        return None
    sides = [
        [step.part for step in sorted(side, key=lambda step: -abs(step.delta))] for side in (shrunk, grown)
    ]
    return Change(
        index=main.index,
        before=before,
        after=before + net,
        ratio=1 + net / before,
        low=1 + (net - margin) / before,
        high=1 + (net + margin) / before,
        direction="moved",
        confidence=main.confidence,
        earliest=main.earliest,
        latest=main.latest,
        doubts=(
            Doubt(doubts.MOVED, {"from": sides[0], "to": sides[1], "share": moved / before}),
            *doubts.location_doubts(last_good, main.index),
        ),
    )
