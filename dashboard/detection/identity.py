"""When is a change that is found now the one that was found before?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dashboard.detection.types import Change

# With few points behind it, one noisy point moves the place where a step fits best: by so many points.
STABLE_WITHIN = 2


def same_change(old: Change, new: Change, give: int = STABLE_WITHIN) -> bool:
    """Is it the same step? By place and direction, not by size: that is learnt with each further point."""
    return old.direction == new.direction and same_place(old, new, give)


def same_place(one: Change, other: Change, give: int = STABLE_WITHIN) -> bool:
    """Does one of them lie where the other may have started, give or take so many points?"""
    return within(one.index, other, give) or within(other.index, one, give)


def within(index: int, change: Change, give: int) -> bool:
    """May the change have started near the index?"""
    return change.earliest - give <= index <= change.latest + give


def paired(old: Sequence[Change], new: Sequence[Change]) -> list[tuple[Change | None, Change | None]]:
    """Which change was which, both in order. Pairs never cross; of several that fit, the nearest is taken.

    (old, new) for the same one, (None, new) for one that appeared, (old, None) for one that vanished.
    """
    remaining = list(old)
    matched: list[tuple[Change | None, Change | None]] = []
    for one in new:
        fitting = [known for known in remaining if same_change(known, one)]
        nearest = min(fitting, key=lambda known: abs(known.index - one.index), default=None)
        if nearest is not None:
            at = remaining.index(nearest)
            matched.extend((gone, None) for gone in remaining[:at])
            remaining = remaining[at + 1 :]
        matched.append((nearest, one))
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
            for old, new in paired(before, now):
                self.reported += old is None
                self.vanished += new is None
                self.moved += old is not None and new is not None and old.index != new.index
            before = now
