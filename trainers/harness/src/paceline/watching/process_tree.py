"""A process with its descendants: what all of them use, by label too, and how to end them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..measured.rank_presence import present_pids
from . import process_usage
from .process_usage import ProcessUsage, cheap_descendant_pids, descendant_pids, orphaned_pids

__all__ = [
    *("MAIN", "LabelUsage", "ProcessTree", "TreeReading"),
    *("descendant_pids", "kill_orphans", "kill_ranks", "kill_tree"),
]

MAIN = "main"
FORKED = "main (forked)"
# Finding the processes costs more than reading those that are known.
WALK_EVERY = 5
# Finding those that have lost their parents costs the most: all that is above us is asked.
ORPHANS_EVERY = 4 * WALK_EVERY
# What multiprocessing starts to remove shared memory and semaphores, once all that use them have ended.
TRACKER = "from multiprocessing.resource_tracker import main"
# That killed processes may take to be gone, and trackers to remove what those left.
GONE_SECONDS = 2.0


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
    """The whole tree. What is counted since the previous reading is None at the first one.

    `cpu` are processor seconds, `read` and `written` bytes from and to disks, `resident` bytes.
    """

    cpu: float | None = 0.0
    resident: int = 0
    threads: int = 0
    read: int | None = 0
    written: int | None = 0
    shares: dict[str, LabelUsage] = field(default_factory=dict)


class ProcessTree:
    """Reads a process tree again and again. A process that ended keeps what it used until then.

    `ranks` is the folder in which ranks say where they stand: those that a service of the host has started,
    as Slurm's does, descend from that one.
    """

    def __init__(self, pid: int, ranks: Path | None = None) -> None:
        self.pid = pid
        self._ranks = ranks
        self._labels: dict[int, str] = {pid: MAIN}
        self._copies: set[int] = set()
        # Of each living process, how much of its use is in readings already.
        self._counted: dict[int, ProcessUsage] = {}
        self._readings = 0
        self._read_at = 0.0

    def read(self) -> TreeReading | None:
        """Return the tree's reading, or None where the process is gone or can't be read."""
        if self._readings % WALK_EVERY == 0:
            self._walk()
        usages = self._read_usages()
        if self.pid not in usages:
            return None
        first, now = not self._readings, process_usage.process_clock()
        elapsed, self._read_at = now - self._read_at, now
        self._readings += 1
        self._pass_on_bytes(usages)
        reading = self._sum_usages(usages, elapsed)
        if first:
            reading.cpu = reading.read = reading.written = None
        return reading

    def proportional_memory(self) -> int | None:
        """Return the tree's proportional memory in bytes, or None where the kernel can't say."""
        sizes = [process_usage.proportional_memory(pid) for pid in self._labels]
        return sum(size for size in sizes if size is not None) if sizes[0] is not None else None

    def pids(self) -> set[int]:
        """Return the tree's processes, also those that were born after the latest walk."""
        return {self.pid, *self._find_pids(orphaned_pids(self.pid))}

    def _walk(self) -> None:
        # What was forked a moment ago has its parent's command and memory, until it runs its own: it is
        # left out until it is seen to stay a copy.
        main, copies, labels = process_usage.command_line(self.pid), set[int](), {self.pid: MAIN}
        orphans = [] if self._readings % ORPHANS_EVERY else orphaned_pids(self.pid)
        for pid in self._find_pids(orphans):
            words = process_usage.command_line(pid)
            if words and words != main:
                labels[pid] = process_usage.process_label(words)
            elif words and pid in self._copies:
                labels[pid] = FORKED
            elif words:
                copies.add(pid)
            elif pid in self._labels:
                # Between two programs a process has no command.
                labels[pid] = self._labels[pid]
        self._labels = labels
        self._copies = copies | {pid for pid, name in labels.items() if name == FORKED}

    def _find_pids(self, orphans: Sequence[int]) -> list[int]:
        """Return what descends from the process, also by parents that have ended meanwhile, and the ranks."""
        found = dict.fromkeys(cheap_descendant_pids(self.pid))
        ranks = present_pids(self._ranks) if self._ranks is not None else []
        for pid in (*self._labels, *self._copies, *orphans, *ranks):
            if pid != self.pid and pid not in found:
                found |= dict.fromkeys((pid, *cheap_descendant_pids(pid)))
        return list(found)

    def _read_usages(self) -> dict[int, ProcessUsage]:
        """Return what the known processes use, and forget those that are gone."""
        usages = {}
        for pid in self._labels:
            used, counted = process_usage.process_usage(pid), self._counted.get(pid)
            # Another process may have got the id of one that is gone.
            if used is not None and (counted is None or counted.started_at == used.started_at):
                usages[pid] = used
        self._labels = {pid: name for pid, name in self._labels.items() if pid in usages or pid == self.pid}
        return usages

    def _pass_on_bytes(self, usages: Mapping[int, ProcessUsage]) -> None:
        """Pass on what was counted of ended processes: who waits for one has its bytes among its own."""
        parents = {pid: counted.parent for pid, counted in self._counted.items()}
        for pid in self._counted.keys() - usages.keys():
            counted, ancestor = self._counted.pop(pid), parents[pid]
            while ancestor in parents and ancestor not in usages:
                ancestor = parents[ancestor]
            if ancestor in self._counted:
                self._counted[ancestor] = _add_bytes(self._counted[ancestor], counted)

    def _sum_usages(self, usages: Mapping[int, ProcessUsage], elapsed: float) -> TreeReading:
        reading = TreeReading()
        for pid, used in usages.items():
            counted = self._counted.get(pid) or _usage_before_reading(used, self._read_at, elapsed)
            self._counted[pid] = replace(
                used,
                read=_larger_known(used.read, counted.read),
                written=_larger_known(used.written, counted.written),
            )
            share = LabelUsage(used.cpu - counted.cpu, used.resident, 1)
            reading.shares.setdefault(self._labels[pid], LabelUsage()).add(share)
            reading.threads += used.threads
            reading.read = _add_growth(reading.read, used.read, counted.read)
            reading.written = _add_growth(reading.written, used.written, counted.written)
        reading.cpu = sum(share.cpu for share in reading.shares.values())
        reading.resident = sum(share.resident for share in reading.shares.values())
        return reading


def _usage_before_reading(used: ProcessUsage, now: float, elapsed: float) -> ProcessUsage:
    """Return what a process used before the latest reading: its processor time is spread over its life.

    It may have been there for a while. All of its time in one reading would be more than the machine has.
    """
    age = now - used.started_at
    before = used.cpu * (1 - elapsed / age) if age > elapsed else 0.0
    return replace(used, cpu=before, read=0, written=0)


def _add_bytes(usage: ProcessUsage, other: ProcessUsage) -> ProcessUsage:
    return replace(
        usage, read=_sum_known(usage.read, other.read), written=_sum_known(usage.written, other.written)
    )


def _sum_known(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def _larger_known(now: int | None, before: int | None) -> int | None:
    return now if now is None or before is None else max(now, before)


def _add_growth(total: int | None, now: int | None, before: int | None) -> int | None:
    return None if total is None or now is None or before is None else total + max(0, now - before)


def kill_tree(pid: int) -> None:
    """Kill a process that leads its own session, and its descendants, also those in other sessions."""
    _kill_processes({*descendant_pids(pid), pid}, pid)


def kill_orphans(group: int) -> None:
    """Kill what a process that led its own session, and has ended, left running in it."""
    _kill_processes(set(), group)


def kill_ranks(folder: Path) -> None:
    """Kill the ranks that were started with a file of this folder, and their descendants."""
    for pid in present_pids(folder):
        # Another process may have got the number of one that has ended.
        if any(Path(word).parent == folder for word in process_usage.command_line(pid)):
            _send_kill({*descendant_pids(pid), pid})


def _kill_processes(members: set[int], group: int) -> None:
    """Kill them and what is left of the group, the trackers of shared resources last.

    Returns when they are gone: one that is dying may still write a file that it had begun.
    """
    members |= set(orphaned_pids(group))
    trackers = {pid for pid in members if TRACKER in " ".join(process_usage.command_line(pid))}
    _send_kill(members - trackers)
    deadline = time.monotonic() + GONE_SECONDS
    while any(map(process_usage.process_usage, members)) and time.monotonic() < deadline:
        time.sleep(GONE_SECONDS / 200)
    _send_kill(trackers)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _send_kill(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
