"""The doubts about a change: sentences that go with it to the page."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.detection.types import Point

FEW_POINTS = "The new level has only {count} points so far."
SHORT_BEFORE = "The level before has only {count} points."
SKIPPED = "Tainted points lie directly before it ({count}): the step may be theirs."
MARKED = "The environment changed here: {marker}."
NO_RATIO = "There are no ratios (zero or both signs): the change is relative to the typical size."
TOO_FEW = "Too few samples to tell: {least} of each are needed, {a} and {b} were given."
NEAR_FLOOR = "Its interval reaches below what is relevant for this kind of metric."
IN_PARTS = "Seen in {parts}: the whole doesn't stand out of its noise."

ENOUGH_POINTS = 3


def location_doubts(points: Sequence[Point], last_good: int, first_bad: int) -> tuple[str, ...]:
    """The doubts about where a step is, and whose, between two neighbouring untainted points."""
    skipped = first_bad - last_good - 1
    markers = (point.marker for point in points[last_good + 1 : first_bad + 1])
    found = [SKIPPED.format(count=skipped)] if skipped else []
    found.extend(MARKED.format(marker=marker) for marker in markers if marker)
    return tuple(found)


def size_doubts(before: int, after: int, near_floor: bool) -> tuple[str, ...]:
    """The doubts about how large a noisy step is, from the numbers of points on both its sides."""
    found = []
    if after < ENOUGH_POINTS:
        found.append(FEW_POINTS.format(count=after))
    if before < ENOUGH_POINTS:
        found.append(SHORT_BEFORE.format(count=before))
    if near_floor:
        found.append(NEAR_FLOOR)
    return tuple(found)
