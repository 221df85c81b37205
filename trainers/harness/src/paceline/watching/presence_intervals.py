"""When something was seen, as intervals: what is asked of them is whether it was there in a window."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

# What is seen again within so many seconds was there in between: a long training keeps few intervals.
SAME_INTERVAL = 2.5


@dataclass(slots=True)
class PresenceIntervals(Generic[Key]):
    """Of each thing the intervals in which it was seen, as [first, last] in seconds."""

    _intervals: dict[Key, list[list[float]]] = field(default_factory=dict)

    def note(self, key: Key, moment: float) -> None:
        """Add that it is there at a moment, which isn't before any other one."""
        intervals = self._intervals.setdefault(key, [])
        if intervals and moment - intervals[-1][1] <= SAME_INTERVAL:
            intervals[-1][1] = moment
        else:
            intervals.append([moment, moment])

    def between(self, start: float, end: float) -> set[Key]:
        """Return what was there at some moment from `start` to `end`."""
        return {
            key
            for key, intervals in self._intervals.items()
            if any(first <= end and last >= start for first, last in intervals)
        }
