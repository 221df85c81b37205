"""What this process's collectives took in the measured window: by kind, and when each began and ended.

The clock of `perf_counter` is the same for all processes of a host, so that the times of two ranks can be
compared: the one that comes last to a collective is the one that the others wait for.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any

# Collectives of a window whose times are kept; of those that follow only the sums.
LIMIT = 8192


@dataclass(slots=True)
class CollectiveTotal:
    """Collectives of one kind: their number, the bytes given in, and the seconds inside."""

    count: int = 0
    size: int = 0
    seconds: float = 0.0


class CollectiveLog:
    """Keeps collectives while the window is open. Its arrays are made before."""

    def __init__(self) -> None:
        self._open = False
        self.totals: dict[str, CollectiveTotal] = {}
        self.overlap: float | None = None
        """Share of the communication of gradients that went on beside computing, where it is known."""
        self._kinds: list[str] = []
        self._arrived, self._left, self._order = array("d"), array("d"), array("B")
        self._kept = 0

    def open_window(self) -> None:
        """Keep collectives from now on."""
        self._arrived = array("d", bytes(8 * LIMIT))
        self._left = array("d", bytes(8 * LIMIT))
        self._order = array("B", bytes(LIMIT))
        self._open = True

    def close_window(self) -> None:
        """Keep none that begin later."""
        self._open = False

    def add(self, kind: str, size: int, arrived: float, left: float, seconds: float, *, of_all: bool) -> None:
        """Add one collective; `of_all` says that every rank takes part, so that all come to it."""
        if not self._open:
            return
        total = self.totals.setdefault(kind, CollectiveTotal())
        total.count += 1
        total.size += size
        total.seconds += seconds
        if of_all and self._kept < LIMIT:
            if kind not in self._kinds:
                self._kinds.append(kind)
            self._arrived[self._kept], self._left[self._kept] = arrived, left
            self._order[self._kept] = self._kinds.index(kind)
            self._kept += 1

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
            "left": list(self._left[: self._kept]),
            "overlap": self.overlap,
        }


log = CollectiveLog()
"""That of this process."""
