"""Processes as /proc shows them: the line `stat` of one, of all, and who descends from whom.

Not by psutil, which measured environments often lack. The sampler and the measured process read here while
steps run: files are opened by the system's call, since a Path costs more than it does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
# Fields behind the command up to the processor, the last one that is read here.
READ_FIELDS = 37


class ProcessStat(NamedTuple):
    """A process's or thread's line `stat`: its command, and the fields behind that, the state first.

    proc_pid_stat(5) counts from 1 and has the state third: what it calls (14) is `fields[11]`.
    """

    command: bytes
    fields: list[bytes]

    @property
    def has_ended(self) -> bool:
        """Whether it is a zombie, or about to vanish."""
        return self.fields[0] in b"ZX"

    @property
    def parent(self) -> int:
        """The process id of its parent; 0 without one."""
        return int(self.fields[1])

    @property
    def ticks(self) -> int:
        """Processor time used so far, in clock ticks."""
        return int(self.fields[11]) + int(self.fields[12])

    @property
    def ticks_with_children(self) -> int:
        """The same with that of its ended children, once they were waited for."""
        return self.ticks + int(self.fields[13]) + int(self.fields[14])

    @property
    def seconds(self) -> float:
        """Processor seconds used so far."""
        return self.ticks / TICKS_PER_SECOND

    @property
    def threads(self) -> int:
        """How many threads it has."""
        return int(self.fields[17])

    @property
    def started_at(self) -> float:
        """When it was started, in seconds since the boot."""
        return int(self.fields[19]) / TICKS_PER_SECOND

    @property
    def resident_bytes(self) -> int:
        """Its memory that is in RAM."""
        return int(self.fields[21]) * PAGE_BYTES

    @property
    def processor(self) -> int:
        """The number of the processor that it ran on last."""
        return int(self.fields[36])


def read_process_stat(pid: int | str, proc: str = "/proc") -> ProcessStat | None:
    """Return the stat of a process, `self` or `thread-self`; None where it is gone or the system has none.

    A line cut short, as a sandbox that imitates /proc may write it, tells nothing either.
    """
    # The command stands in brackets, and may hold spaces and brackets itself.
    start, _, rest = read_proc_file(f"{proc}/{pid}/stat").rpartition(b")")
    fields = rest.split()
    return ProcessStat(start.partition(b"(")[2], fields) if len(fields) >= READ_FIELDS else None


def list_process_stats(proc: str = "/proc") -> Iterator[tuple[int, ProcessStat]]:
    """Yield every process of the machine by its id; none where the system can't say."""
    try:
        names = os.listdir(proc)  # noqa: PTH208  # names are wanted
    except OSError:
        return
    for name in names:
        stat = read_process_stat(name, proc) if name.isdigit() else None
        if stat is not None:
            yield int(name), stat


def child_pids(pid: int) -> list[int]:
    """Return the children of all of a process's threads; none where it is gone or the system can't say."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  # names are wanted
    except OSError:
        return []
    # A thread that has ended since it was listed has no file: one of many, in a program that starts threads.
    files = (f"/proc/{pid}/task/{thread}/children" for thread in threads)
    return [int(child) for file in files for child in read_proc_file(file).split()]


def descendant_pids(pid: int) -> list[int]:
    """Return all below a process, asking each for its children: no other process is looked at."""
    descendants: list[int] = []
    waiting = [pid]
    while waiting:
        below = child_pids(waiting.pop())
        descendants += below
        waiting += below
    return descendants


def ancestor_pids(pid: int, proc: str = "/proc") -> list[int]:
    """Return the process and all above it, as far as the system tells."""
    ancestors: list[int] = []
    while pid > 0 and pid not in ancestors:
        ancestors.append(pid)
        stat = read_process_stat(pid, proc)
        pid = stat.parent if stat else 0
    return ancestors


def read_proc_file(path: str) -> bytes:
    """Return a file's bytes, none where it can't be read; a process may end between any two lines."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        parts = []
        while part := os.read(file, 65_536):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(file)
