"""When something was seen, as spells: what is asked of them is whether it was there in a window."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

# What is seen again within so many seconds was there in between: a long training keeps few spells.
SAME_SPELL = 2.5


@dataclass(slots=True)
class PresenceIntervals(Generic[Key]):
    """Of each thing the spells in which it was seen, as [first, last] in seconds."""

    _spells: dict[Key, list[list[float]]] = field(default_factory=dict)

    def note(self, key: Key, moment: float) -> None:
        """Add that it is there at a moment, which isn't before any other one."""
        spells = self._spells.setdefault(key, [])
        if spells and moment - spells[-1][1] <= SAME_SPELL:
            spells[-1][1] = moment
        else:
            spells.append([moment, moment])

    def between(self, start: float, end: float) -> set[Key]:
        """Return what was there at some moment from `start` to `end`."""
        return {
            key
            for key, spells in self._spells.items()
            if any(first <= end and last >= start for first, last in spells)
        }
