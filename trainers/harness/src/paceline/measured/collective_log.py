"""What this process's collectives took in the measured window: by kind, and when each began and ended.

The clock of `perf_counter` is the same for all processes of a host, so that the times of two ranks can be
compared: the one that comes last to a collective is the one that the others wait for.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from math import nan
from typing import Any

from .overlap import OverlappedTime

# Collectives of a window whose times are kept; of those that follow only the sums.
LIMIT = 8192


@dataclass(slots=True)
class CollectiveTotal:
    """Collectives of one kind: their number, the bytes given in, and the seconds blocked in them."""

    count: int = 0
    size: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective that was launched; `place` is its index among those whose times are kept."""

    kind: str
    arrived: float
    of_all: bool
    place: int | None


class CollectiveLog:
    """Keeps collectives while the window is open. Its arrays are made before."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin anew, in a forked process."""
        self._open = False
        self.totals: dict[str, CollectiveTotal] = {}
        self.overlap = OverlappedTime()
        self.on_device = False
        """Whether a collective was the device's: the host doesn't wait in it."""
        self._kinds: list[str] = []
        self._arrived, self._blocked, self._left = array("d"), array("d"), array("d")
        self._order = array("B")
        self._kept = 0
        self._blocked_seconds = 0.0

    def open_window(self) -> None:
        """Keep collectives from now on."""
        self._arrived, self._blocked, self._left = (array("d", bytes(8 * LIMIT)) for _ in range(3))
        self._order = array("B", bytes(LIMIT))
        self._open = True

    def close_window(self) -> None:
        """Keep none that begin later."""
        self._open = False

    def launch(self, kind: str, size: int, arrived: float, *, of_all: bool) -> Collective | None:
        """Add a collective that this rank has come to; `of_all` says that every rank takes part.

        Returns None while the window isn't open.
        """
        if not self._open:
            return None
        total = self.totals.setdefault(kind, CollectiveTotal())
        total.count += 1
        total.size += size
        place = None
        if of_all and self._kept < LIMIT:
            if kind not in self._kinds:
                self._kinds.append(kind)
            place = self._kept
            self._arrived[place] = self._blocked[place] = arrived
            self._left[place] = nan
            self._order[place] = self._kinds.index(kind)
            self._kept += 1
        return Collective(kind, arrived, of_all, place)

    def finish(self, collective: Collective, blocked: float, left: float, launching: float = 0.0) -> None:
        """Add that a rank was blocked in it from `blocked` to `left`, and before that while launching it."""
        self.totals[collective.kind].seconds += launching + left - blocked
        if collective.of_all:
            self._blocked_seconds += left - blocked
        if collective.place is not None:
            self._blocked[collective.place], self._left[collective.place] = blocked, left

    def result(self, steps: int) -> dict[str, Any] | None:
        """Return the sums per step and the times of those of all ranks; None where there were none."""
        if not self.totals:
            return None
        return {
            "kinds": [
                {
                    "kind": kind,
                    "count": total.count / steps,
                    "bytes": total.size / steps,
                    "seconds": total.seconds / steps,
                }
                for kind, total in sorted(self.totals.items())
            ],
            "order": [self._kinds[number] for number in self._order[: self._kept]],
            "arrived": list(self._arrived[: self._kept]),
            "blocked": list(self._blocked[: self._kept]),
            "left": list(self._left[: self._kept]),
            "blocked_seconds": self._blocked_seconds,
            "overlap": self.overlap.share(),
            "on_device": self.on_device,
        }


log = CollectiveLog()
"""That of this process."""
