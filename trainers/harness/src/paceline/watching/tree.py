"""A process with its descendants: processor time, resident memory, threads; and how to end them all."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

try:
    import psutil
except ImportError:
    psutil = None  # type: ignore[assignment]

HAS_PSUTIL = psutil is not None
# Walking the process table costs a millisecond, reading a known process 50 us.
WALK_EVERY = 5


@dataclass(frozen=True, slots=True)
class Usage:
    """One process: processor seconds since its start, resident bytes, threads."""

    cpu: float
    resident: int
    threads: int


@dataclass(frozen=True, slots=True)
class Reading:
    """The whole tree; `cpu` are seconds since the previous reading, None at the first."""

    cpu: float | None
    resident: int
    threads: int


class Tree:
    """Reads a process tree again and again. A process that ended keeps what it used until then."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._pids: list[int] = [pid]
        self._used: dict[int, float] = {}
        self._readings = 0

    def read(self) -> Reading | None:
        """Return the tree's reading, or None where the process is gone or can't be read."""
        if self._readings % WALK_EVERY == 0:
            self._pids = [self.pid, *descendants(self.pid)]
        found = {pid: usage for pid in self._pids if (usage := _usage(pid)) is not None}
        if self.pid not in found:
            return None
        first = not self._readings
        self._readings += 1
        cpu = sum(usage.cpu - self._used.get(pid, 0.0) for pid, usage in found.items())
        self._used.update({pid: usage.cpu for pid, usage in found.items()})
        resident = sum(usage.resident for usage in found.values())
        return Reading(None if first else cpu, resident, sum(usage.threads for usage in found.values()))

    def pids(self) -> set[int]:
        """Return the processes of the latest walk."""
        return set(self._pids)


def end(pid: int) -> None:
    """Kill a process that leads its own session, and its descendants, also those in other sessions."""
    for found in [*descendants(pid), pid]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(found, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """Return the process ids below a process; empty where it is gone or the system can't say."""
    return _DESCENDANTS(pid)


def _psutil_descendants(pid: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def _proc_descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(entry.name))
        if fields:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _usage(pid: int) -> Usage | None:
    usage = _USAGE(pid)
    # A process gives its memory back a moment before it counts as a zombie.
    return usage if usage and usage.resident else None


def _psutil_usage(pid: int) -> Usage | None:
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            times = process.cpu_times()
            return Usage(times.user + times.system, process.memory_info().rss, process.num_threads())
    except psutil.Error:
        return None


def _proc_usage(pid: int) -> Usage | None:
    fields = _stat(pid)
    if not fields or fields[0] == "Z":
        return None
    ticks = os.sysconf("SC_CLK_TCK")
    resident = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    return Usage((int(fields[11]) + int(fields[12])) / ticks, resident, int(fields[17]))


def _stat(pid: int) -> list[str]:
    """Return /proc/PID/stat from the state on; the command before it may hold spaces and brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


_DESCENDANTS: Callable[[int], list[int]] = _psutil_descendants if HAS_PSUTIL else _proc_descendants
_USAGE: Callable[[int], Usage | None] = _psutil_usage if HAS_PSUTIL else _proc_usage
