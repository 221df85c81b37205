"""Where a quality leaves its guard's bounds, or isn't reported: known at the first point, unlike a step.

A single point may be the bad luck of one seed, so a crossing is a suspicion and no more; pairs over other
seeds decide. What detection sees as a step beside it stands for both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from dashboard.detection import doubts
from dashboard.detection.judgement import judge_series
from dashboard.detection.levels import LEVEL_WINDOW
from dashboard.detection.relevance import EFFECT_FLOORS
from dashboard.detection.scaling import safe_median
from dashboard.detection.types import Better, Change, Direction, Doubt, Series

# A step that is found so many points from a crossing is what the crossing saw too.
SAME_WITHIN = 2
# With one seed a step of less than this part of the level is luck.
LARGE_OF_ONE_SEED = 0.5
# How a point stands: within the bounds, beyond one, or without a value.
KEPT, FAILED, UNKNOWN = "kept", "failed", "unknown"


@dataclass(frozen=True, slots=True)
class GuardedPoint:
    """A point and how it stands to its guard. `value` None: the quality isn't known.

    `failed` None: nothing can be said, since the point is tainted or its run knew no guard.
    """

    value: float | None
    failed: bool | None

    @property
    def state(self) -> str:
        if self.value is None:
            return UNKNOWN
        return FAILED if self.failed else KEPT


def judge_guarded(
    series: Series, points: Sequence[GuardedPoint], known: Collection[int] = (), *, one_seed: bool = False
) -> list[Change]:
    """The changes of a guarded quality: steps in the history, and where it leaves its bounds.

    `one_seed`: all its points were measured with the same seed. Another order of random numbers is then
    another draw of the seed's luck, which all later commits share: only large steps are believed to be more.
    """
    found = judge_series(series, known)
    if one_seed:
        found = [change for change in found if is_large_step(change)]
    return with_crossings(found, guard_crossings(points, series.better))


def is_large_step(change: Change) -> bool:
    """True for a step, either way, that the luck of one seed doesn't make."""
    size = max(abs(change.before), abs(change.after))
    return abs(change.after - change.before) >= LARGE_OF_ONE_SEED * size


def guard_crossings(points: Sequence[GuardedPoint], better: Better) -> list[Change]:
    """A change wherever points that keep the guard end, or begin again, and where nothing is known any more.

    One that stays within the effect floor of the level before is none: pairs couldn't call it relevant.
    """
    known = [index for index, point in enumerate(points) if point.failed is not None]
    kept: float | None = None
    lost: float | None = None
    reported = True
    crossings = []
    for state, indices in groupby(known, key=lambda index: points[index].state):
        stretch = list(indices)
        values = [value for index in stretch if (value := points[index].value) is not None]
        if state == KEPT:
            level = median_of(values)
            if kept is not None and lost is not None:
                back = doubts.GUARD_KEPT if reported else doubts.REPORTED_AGAIN
                crossings.append(make_crossing(stretch[0], lost, level, "improvement", back))
            kept, lost = level, None
        elif kept is not None:
            level = median_of(values) if values else lost_level(kept, better)
            if not values or (lost is None and is_relevant_loss(kept, level, better)):
                crossings.append(make_crossing(stretch[0], kept, level, "regression", doubts.GUARD_CROSSED))
                lost, reported = level, bool(values)
    return crossings


def lost_level(before: float, better: Better) -> float:
    """What a quality that isn't reported counts as: as far for the worse as the level before is from zero."""
    size = abs(before) or 1.0
    return before - size if better == "higher" else before + size


def is_relevant_loss(before: float, after: float, better: Better) -> bool:
    """True for a step for the worse of the effect floor or more. By difference: a quality may be negative."""
    loss = before - after if better == "higher" else after - before
    return loss > 0 and loss >= EFFECT_FLOORS["quality"].long * max(abs(before), abs(after))


def median_of(values: Sequence[float]) -> float:
    return safe_median(np.array(values[-LEVEL_WINDOW:], dtype=np.float64))


def make_crossing(index: int, before: float, after: float, direction: Direction, doubt: str) -> Change:
    """It has no ratio, and nothing says how likely it is. `doubt`: the code that says what was seen."""
    return Change(
        index=index,
        before=before,
        after=after,
        ratio=1.0,
        low=1.0,
        high=1.0,
        direction=direction,
        confidence=0.5,
        earliest=index,
        latest=index,
        doubts=(Doubt(doubt),),
    )


def with_crossings(found: Sequence[Change], crossings: Iterable[Change]) -> list[Change]:
    """The changes of a series, and the crossings that none of them has seen."""
    unseen = _unseen_crossings(found, list(crossings))
    return sorted([*found, *unseen], key=lambda change: change.index)


def _unseen_crossings(found: Sequence[Change], crossings: Sequence[Change]) -> Iterator[Change]:
    for crossing in crossings:
        near = [change for change in found if abs(change.index - crossing.index) <= SAME_WITHIN]
        # What was lost, repaired and lost again right after has crossed twice: a step has seen the nearest.
        same = any(_nearest_crossing(change, crossings) is crossing for change in near)
        if not same and not any(change.index == crossing.index for change in near):
            yield crossing


def _nearest_crossing(change: Change, crossings: Sequence[Change]) -> Change | None:
    """Of those in the step's direction; None where there is none."""
    alike = [crossing for crossing in crossings if crossing.direction == change.direction]
    return min(alike, key=lambda crossing: abs(crossing.index - change.index), default=None)
