"""Processes that a worker starts: always a whole tree, with a time limit, and never outliving the worker."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from workers.host.folders import measure_folder

REAPER = Path(__file__).with_name("reaper.py")
GIB = 1024**3


@dataclass(frozen=True)
class Limits:
    """What one process of a tree may use; `data` (bytes) is left open unless an operator sets it."""

    file_size: int = 64 * GIB
    open_files: int = 65536
    data: int | None = None

    def by_name(self) -> dict[str, int]:
        """As the reaper takes them. A core file of a training process would fill the disk."""
        limits = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": self.file_size, "RLIMIT_NOFILE": self.open_files}
        return limits if self.data is None else {**limits, "RLIMIT_DATA": self.data}


@dataclass(frozen=True)
class FolderLimit:
    """What may come to lie in a folder and in `others`: bytes on disk, and files, folders and links."""

    folder: Path
    size: int
    files: int
    others: tuple[Path, ...] = ()


@dataclass(frozen=True)
class ProcessSpec:
    """What to start: the whole environment of the tree is given, nothing is inherited."""

    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    time_limit: float
    limits: Limits = field(default_factory=Limits)
    # The file descriptor of the machine's lock, held until the last process of the tree is gone.
    lock: int | None = None
    grace: float = 3.0
    # Bytes that the whole tree may print, and what it may write: it is ended where it takes more.
    output_limit: int | None = None
    folder_limit: FolderLimit | None = None


@dataclass(frozen=True)
class ProcessResult:
    """How a tree ended: exit status of its root (128 + N: by signal N).

    `exceeded` is "output" or "folder" where the tree was ended because of that limit.
    """

    status: int
    timed_out: bool = False
    stopped: bool = False
    exceeded: str = ""


def run_process_tree(
    spec: ProcessSpec, output: Callable[[bytes], None], stop: threading.Event
) -> ProcessResult:
    """Start the tree and wait until nothing of it is left.

    `output` gets what it prints, chunk by chunk, in another thread. Where `stop` is set or the time limit
    passes, or a limit of the spec is exceeded, every process of the tree is ended: SIGTERM, then SIGKILL
    after the spec's grace.
    """
    reaper = start_reaper(spec)
    watchdog, printed = cast("IO[bytes]", reaper.stdin), cast("IO[bytes]", reaper.stdout)
    watch = LimitWatch(spec, output)
    reader = threading.Thread(target=forward_output, args=(printed.fileno(), watch.take_output), daemon=True)
    reader.start()
    until = time.monotonic() + spec.time_limit
    try:
        cause = wait_for_end(reaper.pid, until, stop, watch.exceeded)
    finally:
        watchdog.close()
        status = reaper.wait()
        # A process that left the tree's session may hold the pipe open only until the reaper found it.
        reader.join(timeout=5)
        if not reader.is_alive():
            printed.close()
    exceeded = cause if cause in ("output", "folder") else ""
    return ProcessResult(status, timed_out=cause == "time", stopped=cause == "stop", exceeded=exceeded)


class LimitWatch:
    """Counts what a tree prints and, now and then, what it has written."""

    def __init__(self, spec: ProcessSpec, output: Callable[[bytes], None]) -> None:
        self.spec = spec
        self.output = output
        self.printed = 0
        self.next_look = 0.0

    def take_output(self, data: bytes) -> None:
        """Pass output on, but nothing beyond the limit."""
        self.printed += len(data)
        if self.spec.output_limit is None or self.printed <= self.spec.output_limit:
            self.output(data)

    def exceeded(self) -> str:
        """The name of the limit that is exceeded; empty where none is."""
        if self.spec.output_limit is not None and self.printed > self.spec.output_limit:
            return "output"
        limit, started = self.spec.folder_limit, time.monotonic()
        if limit is None or started < self.next_look:
            return ""
        measured = [measure_folder(folder, limit.files) for folder in (limit.folder, *limit.others)]
        size, files = sum(part[0] for part in measured), sum(part[1] for part in measured)
        # A look costs as much as there are files: it takes a hundredth of a processor at most.
        ended = time.monotonic()
        self.next_look = ended + max(1.0, 100 * (ended - started))
        return "folder" if size > limit.size or files > limit.files else ""


def start_reaper(spec: ProcessSpec) -> subprocess.Popen[bytes]:
    """Start the process that starts the tree and ends it."""
    limits = " ".join(f"{name}={limit}" for name, limit in spec.limits.by_name().items())
    options = [str(spec.grace), "" if spec.lock is None else str(spec.lock), limits]
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(REAPER), *options, *spec.command],
        cwd=spec.folder,
        env=dict(spec.environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=() if spec.lock is None else (spec.lock,),
    )


def wait_for_end(process: int, until: float, stop: threading.Event, exceeded: Callable[[], str] = str) -> str:
    """Until the process ends ("end"), the time comes ("time"), the stop is set ("stop"), or a limit is over.

    Returns that word, or the limit's name.
    """
    descriptor = os.pidfd_open(process)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while not stop.is_set():
            left = until - time.monotonic()
            # What ended as late as this had reached its limit, whatever it says of itself.
            if left <= 0:
                return "time"
            if poll.poll(min(200, 1000 * left)):
                return "end"
            if limit := exceeded():
                return limit
        return "stop"
    finally:
        os.close(descriptor)


def forward_output(descriptor: int, output: Callable[[bytes], None]) -> None:
    """Read to the end, always: a tree whose output nobody takes would stand still."""
    while chunk := os.read(descriptor, 65536):
        output(chunk)
