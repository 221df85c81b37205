"""The doubts about a change: codes that go with it to the page, which has the sentences."""

from __future__ import annotations

from dashboard.detection.types import Doubt

FEW_POINTS_AFTER = "few points after"
FEW_POINTS_BEFORE = "few points before"
TAINTED_BEFORE = "tainted before"
NO_RATIO = "no ratio"
TOO_FEW_SAMPLES = "too few samples"
NEAR_FLOOR = "near floor"
IN_PARTS = "in parts"
MOVED = "moved"
NOT_IN_BEST = "not in best"
GUARD_CROSSED = "guard crossed"
GUARD_KEPT = "guard kept"
# Nothing was reported before: what the level was counts as, nobody has measured.
REPORTED_AGAIN = "reported again"
VARIES = "varies"

ENOUGH_POINTS = 3


def location_doubts(last_good: int, first_bad: int) -> tuple[Doubt, ...]:
    """The doubts about where a step is, between two neighbouring untainted points."""
    tainted = first_bad - last_good - 1
    return (Doubt(TAINTED_BEFORE, {"count": tainted}),) if tainted else ()


def size_doubts(before: int, after: int, near_floor: bool) -> tuple[Doubt, ...]:
    """The doubts about how large a noisy step is, from the numbers of points on both its sides."""
    doubts = []
    if after < ENOUGH_POINTS:
        doubts.append(Doubt(FEW_POINTS_AFTER, {"count": after}))
    if before < ENOUGH_POINTS:
        doubts.append(Doubt(FEW_POINTS_BEFORE, {"count": before}))
    if near_floor:
        doubts.append(Doubt(NEAR_FLOOR))
    return tuple(doubts)
