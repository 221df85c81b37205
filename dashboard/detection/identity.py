"""Which change that is found now is one that was found before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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


def pair_changes(old: Sequence[Change], new: Sequence[Change]) -> list[tuple[Change | None, Change | None]]:
    """Which change was which, both in order. Pairs never cross; of several that fit, the nearest is taken.

    (old, new) for the same one, (None, new) for one that appeared, (old, None) for one that vanished.
    """
    remaining = list(old)
    matched: list[tuple[Change | None, Change | None]] = []
    for change in new:
        fitting = [known for known in remaining if same_change(known, change)]
        nearest = min(fitting, key=lambda known: abs(known.index - change.index), default=None)
        if nearest is not None:
            at = remaining.index(nearest)
            matched.extend((gone, None) for gone in remaining[:at])
            remaining = remaining[at + 1 :]
        matched.append((nearest, change))
    return [*matched, *((gone, None) for gone in remaining)]


@dataclass(slots=True)
class Steadiness:
    """What became of the changes that were reported while a history grew, counted."""

    reported: int = 0
    moved: int = 0
    vanished: int = 0

    def follow(self, reports: Iterator[Sequence[Change]]) -> None:
        """Add the reports of one history, one after each point."""
        before: Sequence[Change] = ()
        for now in reports:
            for old, new in pair_changes(before, now):
                self.reported += old is None
                self.vanished += new is None
                self.moved += old is not None and new is not None and old.index != new.index
            before = now
