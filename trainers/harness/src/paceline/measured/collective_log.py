"""What this process's collectives took in the measured window: by kind, and when each began and ended.

The clock of `perf_counter` is the same for all processes of a host, so that the times of two ranks can be
compared: the one that comes last to a collective is the one that the others wait for.

Between two collectives a training computes, so that nothing of what notes them is in the processor's caches.
Then to extend a list costs less than to fill an array, whose code nothing else runs. So a collective is put
into a list, which is moved into an array now and then; all are summed up in `result`.
"""

from __future__ import annotations

import copy
import math
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from .overlap import OverlappedTime

# Kinds of collectives and of messages. What is noted of one holds the number of its kind.
KINDS = (
    *("all_reduce", "reduce", "broadcast", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all"),
    *("barrier", "send", "recv"),
)
BARRIER = KINDS.index("barrier")
# Collectives of a window whose times are kept; of those that follow only the sums.
LIMIT = 8192
# So many are moved into the array at once.
BATCH = 64
# How a rank was blocked: from begin to end, or at the end of what went on beside it: a reduction in the
# backward pass, or a collective that it had launched.
THROUGHOUT, BEHIND_BACKWARD, LAUNCHED = range(3)

# When the rank arrived, was blocked from, and left; the bytes; the number of the kind; how it was blocked.
_FIELDS = 6


@dataclass(slots=True)
class CollectiveTotal:
    """Collectives of one kind: their number, the bytes given in, and the seconds blocked in them."""

    count: int = 0
    size: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class CollectiveSums:
    """All collectives by kind; the seconds blocked in those of all ranks, and in those that hid nothing."""

    totals: list[CollectiveTotal] = field(default_factory=lambda: [CollectiveTotal() for _ in KINDS])
    blocked: float = 0.0
    unhidden: float = 0.0

    def add(self, kind: int, size: int, of_all: bool, seconds: float, how: int) -> None:
        """Add one that this rank was blocked in."""
        total = self.totals[kind]
        total.count += 1
        total.size += size
        total.seconds += seconds
        self.blocked += seconds if of_all else 0.0
        # In a barrier nothing is sent.
        self.unhidden += seconds if how == THROUGHOUT and kind != BARRIER else 0.0


@dataclass(slots=True)
class Collective:
    """One that was launched and goes on beside the rank; `place` is its record's, where it has one."""

    kind: int
    size: int
    of_all: bool
    arrived: float
    launched: float
    place: int | None


class CollectiveLog:
    """Keeps collectives while the window is open. Its memory is taken before.

    Of a collective `kind` is its number, `of_all` says that every rank takes part, and `size` is how many
    bytes this one gives in.
    """

    __slots__ = (
        *("is_open", "on_device", "overlap"),
        *("_kept", "_lock", "_most_pending", "_pending", "_records", "_unrecorded"),
    )

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin anew, in a forked process."""
        self._lock = Lock()
        # Records, one behind the other.
        self._pending: list[float] = []
        self._most_pending = _FIELDS * BATCH
        self.is_open = False
        self.overlap = OverlappedTime()
        self.on_device = False
        """Whether a collective was the device's: the host doesn't wait in it."""
        self._records = array("d")
        self._kept = 0
        self._unrecorded = CollectiveSums()

    def open_window(self) -> None:
        """Keep collectives from now on."""
        # Copied, so that all its pages are there before the window.
        self._records = array("d", bytes(8 * _FIELDS * LIMIT))
        self.is_open = True

    def close_window(self) -> None:
        """Keep none that begin later."""
        self.is_open = False

    def add(
        self, kind: int, size: int, of_all: bool, arrived: float, left: float, how: int = THROUGHOUT
    ) -> None:
        """Add a collective that blocked this rank from the moment when it arrived until it left."""
        if of_all:
            pending = self._pending
            pending.extend((arrived, arrived, left, size, kind, how))
            if len(pending) >= self._most_pending:
                self._keep_pending()
        else:
            self._unrecorded.add(kind, size, False, left - arrived, how)

    def launch(self, kind: int, size: int, of_all: bool, arrived: float, launched: float) -> Collective:
        """Add a collective that goes on while this rank does, from `launched` on."""
        total = self._unrecorded.totals[kind]
        total.count += 1
        total.size += size
        if self._pending:
            self._keep_pending()
        place = self._kept if of_all and self._kept < LIMIT else None
        if place is not None:
            self._kept += 1
            self._write_launched(place, kind, arrived, arrived, math.nan)
        return Collective(kind, size, of_all, arrived, launched, place)

    def finish(self, collective: Collective, blocked: float, left: float, *, had_ended: bool) -> None:
        """Add that this rank was blocked in it from `blocked` to `left`; before that it may have ended."""
        kind, arrived = collective.kind, collective.arrived
        self._unrecorded.totals[kind].seconds += collective.launched - arrived + left - blocked
        if collective.of_all:
            self._unrecorded.blocked += left - blocked
        if collective.place is not None:
            self._write_launched(collective.place, kind, arrived, blocked, left)
        if had_ended:
            self.overlap.add_ended_before(kind, collective.size, blocked - arrived)
        else:
            self.overlap.add_waited(kind, collective.size, left - arrived, blocked - arrived)

    def result(self, steps: int) -> dict[str, Any] | None:
        """Return the sums per step and the times of those of all ranks; None where there were none."""
        self._keep_pending()
        kept = self._records[: _FIELDS * self._kept]
        sums = copy.deepcopy(self._unrecorded)
        for _, blocked, left, size, kind, how in _read_records(kept):
            if how != LAUNCHED:
                sums.add(int(kind), int(size), True, left - blocked, int(how))
        rows = sorted((kind, total) for kind, total in zip(KINDS, sums.totals, strict=True) if total.count)
        if not rows:
            return None
        return {
            "kinds": [
                {
                    "kind": kind,
                    "count": total.count / steps,
                    "bytes": total.size / steps,
                    "seconds": total.seconds / steps,
                }
                for kind, total in rows
            ],
            "order": [KINDS[int(kind)] for kind in kept[4::_FIELDS]],
            "arrived": kept[0::_FIELDS].tolist(),
            "blocked": kept[1::_FIELDS].tolist(),
            "left": kept[2::_FIELDS].tolist(),
            "blocked_seconds": sums.blocked,
            # Nor does it see when one ends that goes on beside it.
            "overlap": None if self.on_device else self.overlap.share(sums.unhidden),
            "on_device": self.on_device,
        }

    def _keep_pending(self) -> None:
        """Move those that are pending into the array, in their order; beyond the limit keep their sums."""
        # Another thread may add one meanwhile, or move them.
        with self._lock:
            count = len(self._pending)
            fields = self._pending[:count]
            del self._pending[:count]
            start = _FIELDS * self._kept
            fitting = min(count, _FIELDS * LIMIT - start)
            self._records[start : start + fitting] = array("d", fields[:fitting])
            self._kept += fitting // _FIELDS
            for _, blocked, left, size, kind, how in _read_records(fields[fitting:]):
                self._unrecorded.add(int(kind), int(size), True, left - blocked, int(how))

    def _write_launched(self, place: int, kind: int, arrived: float, blocked: float, left: float) -> None:
        # Its sums are kept apart: launching takes time as well.
        fields = slice(_FIELDS * place, _FIELDS * (place + 1))
        self._records[fields] = array("d", (arrived, blocked, left, 0, kind, LAUNCHED))


def _read_records(fields: Iterable[float]) -> Iterator[tuple[float, ...]]:
    return zip(*[iter(fields)] * _FIELDS, strict=True)


log = CollectiveLog()
"""That of this process."""
