"""What one process uses, and its children and command, as the system reports them.

Linux does so in /proc, a few microseconds a file; elsewhere psutil does, where it is installed.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ..system import processes
from ..system.processes import read_proc_file

try:
    import psutil
except ImportError:
    psutil = None  # type: ignore[assignment]

HAS_PSUTIL = psutil is not None
# What is started for each rank, by a launcher or by a file's name, and what that is called.
MEASURED, MEASURED_FILE, RANK = "paceline.measured.child", "/paceline/measured/child.py", "rank"
HAS_PROC = os.path.exists(f"/proc/{os.getpid()}/stat")  # noqa: PTH110  # a Path costs more than the call
HAS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")  # noqa: PTH110


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """One process: processor seconds since its start, resident bytes, threads, bytes from and to disks.

    The bytes are those of its ended children too, once it has waited for them; what the system doesn't say
    of disks is None. `started_at`, by `process_clock`, tells it from a later process of the same id.
    """

    cpu: float
    resident: int
    threads: int
    started_at: float
    read: int | None = None
    written: int | None = None
    parent: int = 0


def process_usage(pid: int) -> ProcessUsage | None:
    """Return what a process uses, or None where it is gone, a zombie, or can't be read."""
    usage = _proc_usage(pid) if HAS_PROC else _psutil_usage(pid) if HAS_PSUTIL else None
    # A process gives its memory back a moment before it counts as a zombie.
    return usage if usage and usage.resident else None


def process_clock() -> float:
    """Return the seconds of the clock by which processes start: since the boot, as /proc has it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if HAS_PROC else time.time()


def descendant_pids(pid: int) -> list[int]:
    """Return the process ids below a process; empty where it is gone or the system can't say."""
    return _proc_descendants(pid) if HAS_PROC else _psutil_descendants(pid)


def cheap_descendant_pids(pid: int) -> list[int]:
    """Return the same at a cost that doesn't grow with the machine; a newborn process may be missing."""
    return processes.descendant_pids(pid) if HAS_CHILDREN else descendant_pids(pid)


def orphaned_pids(session: int) -> list[int]:
    """Return the processes of a session whose parents have ended: one of our ancestors has taken them over.

    Which one does so depends on the system. What began a session of its own looks like a stranger.
    """
    if not HAS_CHILDREN:
        return []
    ancestors = processes.ancestor_pids(os.getpid())
    # Twice: the kernel's list may leave one out while another one ends, and an ancestor has many strangers.
    looks = (*ancestors, *ancestors)
    children = dict.fromkeys(child for ancestor in looks for child in processes.child_pids(ancestor))
    return [child for child in children if child != session and _session_of(child) == session]


def proportional_memory(pid: int) -> int | None:
    """Return resident bytes, shared pages divided by who shares them; None where the kernel can't say.

    The kernel walks the process's page tables for it, about 2 ms for a training process.
    """
    total = re.search(rb"^Pss:\s+(\d+) kB", read_proc_file(f"/proc/{pid}/smaps_rollup"), re.MULTILINE)
    return int(total.group(1)) * 1024 if total else None


def command_line(pid: int) -> list[str]:
    """Return the words that a process was started with; none where it is gone or the system can't say."""
    if HAS_PROC:
        words = read_proc_file(f"/proc/{pid}/cmdline").decode(errors="replace").split("\0")
        return [word for word in words if word]
    try:
        return psutil.Process(pid).cmdline() if HAS_PSUTIL else []
    except psutil.Error:
        return []


def process_label(words: Sequence[str]) -> str:
    """Name a command line: the module or script that Python runs, else the program; empty without words.

    >>> process_label(["python3", "-u", "serve/service.py"]), process_label(["/bin/redis-server"])
    ('service.py', 'redis-server')
    """
    if not words:
        return ""
    # A process that renamed itself has one long word: `ray::Worker.run (idle)`.
    program = words[0].split()[0].rpartition("/")[2] if words[0].split() else ""
    name = _python_label(words[1:]) or program if program.startswith("python") else program
    name = RANK if name == MEASURED else name
    # A process may give itself any title, a blank one too.
    return "".join(letter for letter in name if letter.isprintable())[:100].strip() or "process"


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
        elif word.endswith(MEASURED_FILE):
            return MEASURED
        elif not word.startswith("-"):
            # A package's entry is called after the package: torch's compile workers, for one.
            return word.removesuffix("/__main__.py").rpartition("/")[2]
    return ""


def _proc_usage(pid: int) -> ProcessUsage | None:
    stat = processes.read_process_stat(pid)
    if stat is None or stat.has_ended:
        return None
    disks = dict(line.split(b": ") for line in read_proc_file(f"/proc/{pid}/io").splitlines())
    return ProcessUsage(
        cpu=stat.seconds,
        resident=stat.resident_bytes,
        threads=stat.threads,
        started_at=stat.started_at,
        read=int(disks[b"read_bytes"]) if disks else None,
        written=int(disks[b"write_bytes"]) if disks else None,
        parent=stat.parent,
    )


def _psutil_usage(pid: int) -> ProcessUsage | None:
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            times, resident = process.cpu_times(), process.memory_info().rss
            cpu, started_at = times.user + times.system, process.create_time()
            return ProcessUsage(cpu, resident, process.num_threads(), started_at, parent=process.ppid())
    except psutil.Error:
        return None


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _proc_descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for process, stat in processes.list_process_stats():
        children.setdefault(stat.parent, []).append(process)
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
