"""What one process uses, and its children and command, as the system reports them.

Linux does so in /proc, a few microseconds a file; elsewhere psutil does, where it is installed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

try:
    import psutil
except ImportError:
    psutil = None  # type: ignore[assignment]

HAS_PSUTIL = psutil is not None
HAS_PROC = os.path.exists(f"/proc/{os.getpid()}/stat")  # noqa: PTH110  # a Path costs more than the call
HAS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")  # noqa: PTH110
_TICK = os.sysconf("SC_CLK_TCK") if HAS_PROC else 100
_PAGE = os.sysconf("SC_PAGE_SIZE") if HAS_PROC else 4096


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """One process: processor seconds since its start, resident bytes, threads, bytes from and to disks.

    `started_at` tells it from a later process of the same id. What the system doesn't say of disks is None.
    """

    cpu: float
    resident: int
    threads: int
    started_at: float
    read: int | None = None
    written: int | None = None


def process_usage(pid: int) -> ProcessUsage | None:
    """Return what a process uses, or None where it is gone, a zombie, or can't be read."""
    usage = _proc_usage(pid) if HAS_PROC else _psutil_usage(pid) if HAS_PSUTIL else None
    # A process gives its memory back a moment before it counts as a zombie.
    return usage if usage and usage.resident else None


def descendant_pids(pid: int) -> list[int]:
    """Return the process ids below a process; empty where it is gone or the system can't say."""
    return _proc_descendants(pid) if HAS_PROC else _psutil_descendants(pid)


def cheap_descendant_pids(pid: int) -> list[int]:
    """Return the same at a cost that doesn't grow with the machine; a newborn process may be missing."""
    return _children_descendants(pid) if HAS_CHILDREN else descendant_pids(pid)


def proportional_memory(pid: int) -> int | None:
    """Return resident bytes, shared pages divided by who shares them; None where the kernel can't say.

    The kernel walks the process's page tables for it, about 2 ms for a training process.
    """
    total = re.search(rb"^Pss:\s+(\d+) kB", _read_bytes(f"/proc/{pid}/smaps_rollup"), re.MULTILINE)
    return int(total.group(1)) * 1024 if total else None


def command_line(pid: int) -> list[str]:
    """Return the words that a process was started with; none where it is gone or the system can't say."""
    if HAS_PROC:
        words = _read_bytes(f"/proc/{pid}/cmdline").decode(errors="replace").split("\0")
        return [word for word in words if word]
    try:
        return psutil.Process(pid).cmdline() if HAS_PSUTIL else []
    except psutil.Error:
        return []


def process_label(words: Sequence[str]) -> str:
    """Name a command line: the module or script that Python runs, else the program.

    >>> process_label(["python3", "-u", "serve/service.py"]), process_label(["/bin/redis-server"])
    ('service.py', 'redis-server')
    """
    if not words:
        return ""
    # A process that renamed itself has one long word: `ray::Worker.run (idle)`.
    program = words[0].split()[0].rpartition("/")[2] if words[0].split() else ""
    name = _python_label(words[1:]) or program if program.startswith("python") else program
    return "".join(letter for letter in name if letter.isprintable())[:100]


def _python_label(words: Sequence[str]) -> str:
    arguments = iter(words)
    for word in arguments:
        if word == "-m":
            return next(arguments, "")
        if word == "-c":
            # What multiprocessing starts has no other name.
            code = re.match(r"from (multiprocessing\.\w+) import", next(arguments, ""))
            return code.group(1) if code else "python -c"
        if word in ("-X", "-W"):
            next(arguments, "")
        elif not word.startswith("-"):
            # A package's entry is called after the package: torch's compile workers, for one.
            return word.removesuffix("/__main__.py").rpartition("/")[2]
    return ""


def _proc_usage(pid: int) -> ProcessUsage | None:
    # The command before the last bracket may hold spaces and brackets itself.
    fields = _read_bytes(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if not fields or fields[0] in b"ZX":
        return None
    disks = dict(line.split(b": ") for line in _read_bytes(f"/proc/{pid}/io").splitlines())
    return ProcessUsage(
        cpu=(int(fields[11]) + int(fields[12])) / _TICK,
        resident=int(fields[21]) * _PAGE,
        threads=int(fields[17]),
        started_at=float(fields[19]),
        read=int(disks[b"read_bytes"]) if disks else None,
        written=int(disks[b"write_bytes"]) if disks else None,
    )


def _psutil_usage(pid: int) -> ProcessUsage | None:
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            times, resident = process.cpu_times(), process.memory_info().rss
            cpu, started_at = times.user + times.system, process.create_time()
            return ProcessUsage(cpu, resident, process.num_threads(), started_at)
    except psutil.Error:
        return None


def _children_descendants(pid: int) -> list[int]:
    """Ask each thread for its children: no other process of the machine is looked at."""
    descendants: list[int] = []
    waiting = [pid]
    while waiting:
        below = [int(child) for task in _children_files(waiting.pop()) for child in _read_bytes(task).split()]
        descendants += below
        waiting += below
    return descendants


def _children_files(pid: int) -> Iterator[str]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    except OSError:
        return
    yield from (f"/proc/{pid}/task/{thread}/children" for thread in threads)


def _proc_descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        fields = _read_bytes(f"/proc/{entry.name}/stat").rpartition(b")")[2].split()
        if fields:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    descendants: list[int] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        descendants += below
        waiting += below
    return descendants


def _psutil_descendants(pid: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)] if HAS_PSUTIL else []
    except psutil.Error:
        return []


def _read_bytes(path: str) -> bytes:
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
