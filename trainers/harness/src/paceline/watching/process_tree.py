"""A process with its descendants: what all of them use, by label too, and how to end them."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field

from . import process_usage
from .process_usage import ProcessUsage, cheap_descendant_pids, descendant_pids

__all__ = ["MAIN", "LabelUsage", "ProcessTree", "TreeReading", "descendant_pids", "kill_tree"]

MAIN = "main"
FORKED = "main (forked)"
# Finding the processes costs more than reading those that are known.
WALK_EVERY = 5


@dataclass(slots=True)
class LabelUsage:
    """What the processes of one label use: processor seconds since the previous reading, resident bytes."""

    cpu: float = 0.0
    resident: int = 0
    count: int = 0

    def add(self, other: LabelUsage) -> None:
        """Take another share's processes in."""
        self.cpu += other.cpu
        self.resident += other.resident
        self.count += other.count


@dataclass(slots=True)
class TreeReading:
    """The whole tree. What is told since the previous reading is None at the first one.

    `cpu` are processor seconds, `read` and `written` bytes from and to disks, `resident` bytes.
    """

    cpu: float | None = 0.0
    resident: int = 0
    threads: int = 0
    read: int | None = 0
    written: int | None = 0
    shares: dict[str, LabelUsage] = field(default_factory=dict)


class ProcessTree:
    """Reads a process tree again and again. A process that ended keeps what it used until then."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._labels: dict[int, str] = {pid: MAIN}
        self._copies: set[int] = set()
        self._before: dict[tuple[int, float], ProcessUsage] = {}
        self._readings = 0

    def read(self) -> TreeReading | None:
        """Return the tree's reading, or None where the process is gone or can't be read."""
        if self._readings % WALK_EVERY == 0:
            self._walk()
        usages = {pid: used for pid in self._labels if (used := process_usage.process_usage(pid)) is not None}
        if self.pid not in usages:
            return None
        first = not self._readings
        self._readings += 1
        reading = self._sum_usages(usages)
        if first:
            reading.cpu = reading.read = reading.written = None
        return reading

    def proportional_memory(self) -> int | None:
        """Return the tree's proportional memory in bytes, or None where the kernel can't say."""
        sizes = [process_usage.proportional_memory(pid) for pid in self._labels]
        return sum(size for size in sizes if size is not None) if sizes[0] is not None else None

    def pids(self) -> set[int]:
        """Return the processes of the latest walk."""
        return set(self._labels)

    def _walk(self) -> None:
        # What was forked a moment ago has its parent's command and memory, until it runs its own: it is
        # left out until it is seen to stay a copy.
        main, copies = process_usage.command_line(self.pid), set[int]()
        self._labels = {self.pid: MAIN}
        for pid in cheap_descendant_pids(self.pid):
            words = process_usage.command_line(pid)
            if words and words != main:
                self._labels[pid] = process_usage.process_label(words)
            elif words and pid in self._copies:
                self._labels[pid] = FORKED
            elif words:
                copies.add(pid)
        self._copies = copies | {pid for pid, name in self._labels.items() if name == FORKED}

    def _sum_usages(self, usages: Mapping[int, ProcessUsage]) -> TreeReading:
        reading = TreeReading()
        for pid, used in usages.items():
            before = self._before.get((pid, used.started_at), ProcessUsage(0.0, 0, 0, used.started_at, 0, 0))
            self._before[pid, used.started_at] = used
            share = LabelUsage(used.cpu - before.cpu, used.resident, 1)
            reading.shares.setdefault(self._labels[pid], LabelUsage()).add(share)
            reading.threads += used.threads
            reading.read = _add_growth(reading.read, used.read, before.read)
            reading.written = _add_growth(reading.written, used.written, before.written)
        reading.cpu = sum(share.cpu for share in reading.shares.values())
        reading.resident = sum(share.resident for share in reading.shares.values())
        return reading


def _add_growth(total: int | None, now: int | None, before: int | None) -> int | None:
    return None if total is None or now is None or before is None else total + now - before


def kill_tree(pid: int) -> None:
    """Kill a process that leads its own session, and its descendants, also those in other sessions."""
    for member in [*descendant_pids(pid), pid]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(member, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
