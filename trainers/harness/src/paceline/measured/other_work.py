"""Other work beside a program: the processor time that it took, which bounds what it can have delayed.

A thread that waits for a processor may wait for its own program: the workers of its DataLoader, its other
ranks, the threads of its operations. Others kept it waiting at most for as long as they used a processor, and
that is what the whole machine used less what the program's processes used. Of a virtual machine what its host
gave to others counts as other work; how much that was is told apart, since nobody on the machine can end it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

# Of a processor's times in /proc/stat: idle, waiting for a disk, stolen by the host of a virtual machine; and
# guests, which user time has already.
IDLE, DISK_WAIT, STOLEN, GUEST = 3, 4, 7, 8
# Of a process's fields behind its command: its own user and system time, those of its ended children.
FIRST_TIME, BEHIND_TIMES = 11, 15


@dataclass(frozen=True, slots=True)
class ProcessorTicks:
    """One processor's clock ticks so far: with somebody's work or stolen, in all, and the stolen ones."""

    busy: int
    passed: int
    stolen: int = 0


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


def read_processor_ticks() -> dict[str, ProcessorTicks]:
    """Return each processor's ticks by its name; empty where the kernel doesn't say."""
    try:
        lines = Path("/proc/stat").read_text().splitlines()
        rows = [line.split() for line in lines if line.startswith("cpu") and not line.startswith("cpu ")]
        return {name: _count_ticks([int(part) for part in parts[:GUEST]]) for name, *parts in rows}
    except (OSError, ValueError, IndexError):
        return {}


def _count_ticks(parts: list[int]) -> ProcessorTicks:
    stolen = parts[STOLEN] if len(parts) > STOLEN else 0
    return ProcessorTicks(sum(parts) - parts[IDLE] - parts[DISK_WAIT], sum(parts), stolen)


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
    return (counted + 2 * math.sqrt(variance)) / os.sysconf("SC_CLK_TCK") if after else None


def tree_seconds(root: int) -> float | None:
    """Return what a process and its descendants have used so far; None without a process.

    What has ended counts once it was waited for.
    """
    if not root:
        return None
    return sum(_read_times(pid) for pid in [root, *_find_descendants(root)]) / os.sysconf("SC_CLK_TCK")


def _read_times(pid: int) -> int:
    try:
        # Behind the command, which may hold spaces and brackets, field 3 comes first.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(int(field) for field in fields[FIRST_TIME:BEHIND_TIMES])


def _find_descendants(pid: int) -> Iterator[int]:
    for thread in _list_threads(pid):
        for child in _list_children(pid, thread):
            yield child
            yield from _find_descendants(child)


def _list_children(pid: int, thread: str) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split()]
    except OSError:
        # The thread has ended since it was listed: one of many, in a program that starts threads.
        return []


def _list_threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  # names are wanted
    except OSError:
        return []
