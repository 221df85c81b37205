"""Other work beside a program: the processor time that it took, which bounds what it can have delayed.

A thread that waits for a processor may wait for its own program: the workers of its DataLoader, its other
ranks, the threads of its operations. Others kept it waiting at most for as long as they used a processor, and
that is what the whole machine used less what the program's processes used. Of a virtual machine what its host
gave to others counts as other work; how much that was is kept apart, since nobody on the machine can end it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..system.processes import TICKS_PER_SECOND, descendant_pids, read_process_stat
from ..system.processor_ticks import ProcessorTicks, read_processor_ticks


class OtherWork:
    """The processor seconds that all but one process and its descendants take, between two moments."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._ticks: dict[str, ProcessorTicks] = {}
        self._own: float | None = None
        self.seconds: float | None = None
        self.stolen: float | None = None

    def begin(self) -> None:
        """Read what was used so far."""
        # Others are rather given too much: the machine is read first here, and last at the end.
        self._ticks = read_processor_ticks()
        self._own = tree_seconds(self._root)

    def end(self) -> None:
        """Say what others used since then: `seconds`, and `stolen`, the share of all processors' time that a
        virtual machine's host gave to others. None where the kernel doesn't tell."""
        own = tree_seconds(self._root)
        now = read_processor_ticks()
        busy = busy_seconds(self._ticks, now)
        self.stolen = stolen_share(self._ticks, now)
        if busy is None or own is None or self._own is None:
            self.seconds = None
        else:
            self.seconds = max(0.0, busy - (own - self._own))

    def bound_waiting(self, waited: float) -> float:
        """Return how many of the seconds that a thread waited meanwhile others can have caused."""
        return waited if self.seconds is None else min(waited, self.seconds)


def stolen_share(before: Mapping[str, ProcessorTicks], after: Mapping[str, ProcessorTicks]) -> float | None:
    """Return which part of all processors' time was stolen between two readings; None where unknown."""
    if not after or not after.keys() <= before.keys():
        return None
    passed = sum(end.passed - before[name].passed for name, end in after.items())
    stolen = sum(end.stolen - before[name].stolen for name, end in after.items())
    return min(1.0, max(0.0, stolen / passed)) if passed > 0 else None


def busy_seconds(before: Mapping[str, ProcessorTicks], after: Mapping[str, ProcessorTicks]) -> float | None:
    """Return the processor seconds that all may have used between two readings; None where unknown.

    A tick is billed to whoever runs when it comes: the sum is as uncertain as a sample, for a processor that
    was neither idle nor busy throughout. Two standard deviations are added, so that it is rather too much.
    """
    counted = variance = 0.0
    for name, end in after.items():
        start = before.get(name)
        if start is None:
            return None
        busy, passed = end.busy - start.busy, end.passed - start.passed
        counted += busy
        variance += max(0.0, busy * (1 - busy / passed)) if passed > 0 else 0.0
    return (counted + 2 * math.sqrt(variance)) / TICKS_PER_SECOND if after else None


def tree_seconds(root: int) -> float | None:
    """Return what a process and its descendants have used so far; None without a process.

    What has ended counts once it was waited for.
    """
    if not root:
        return None
    stats = map(read_process_stat, [root, *descendant_pids(root)])
    return sum(stat.ticks_with_children for stat in stats if stat) / TICKS_PER_SECOND
