"""Which change that is found now is one that was found before."""

from __future__ import annotations

from dashboard.detection.types import Change

# With few points behind it, one noisy point moves the place where a step fits best: by so many points.
STABLE_WITHIN = 2


def same_change(old: Change, new: Change, tolerance: int = STABLE_WITHIN) -> bool:
    """Whether it is the same step, by location and direction; its size is learnt with each further point."""
    return old.direction == new.direction and same_location(old, new, tolerance)


def same_location(first: Change, second: Change, tolerance: int = STABLE_WITHIN) -> bool:
    """Whether either lies where the other may have started, give or take `tolerance` points."""
    return may_start_near(first.index, second, tolerance) or may_start_near(second.index, first, tolerance)


def may_start_near(index: int, change: Change, tolerance: int) -> bool:
    """Whether the change may have started within so many points of the index."""
    return change.earliest - tolerance <= index <= change.latest + tolerance
