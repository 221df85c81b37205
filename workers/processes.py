"""Processes that a worker starts: always a whole tree, with a time limit, and never outliving the worker."""

from __future__ import annotations

import json
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

KEEPER = Path(__file__).with_name("keeper.py")
GIB = 1024**3


@dataclass(frozen=True)
class Limits:
    """What one process of a tree may use; `data` (bytes) is left open unless an operator sets it."""

    file_size: int = 64 * GIB
    open_files: int = 65536
    data: int | None = None

    def by_name(self) -> dict[str, int]:
        """As the keeper takes them. A core file of a training process would fill the disk."""
        limits = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": self.file_size, "RLIMIT_NOFILE": self.open_files}
        return limits if self.data is None else {**limits, "RLIMIT_DATA": self.data}


@dataclass(frozen=True)
class Order:
    """What to start: the whole environment of the tree is given, nothing is inherited."""

    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    time_limit: float
    limits: Limits = field(default_factory=Limits)
    # The file descriptor of the machine's lock, held until the last process of the tree is gone.
    lock: int | None = None
    grace: float = 3.0


@dataclass(frozen=True)
class Ended:
    """How a tree ended: exit status of its root (128 + N: by signal N)."""

    status: int
    timed_out: bool = False
    stopped: bool = False


def run(order: Order, output: Callable[[bytes], None], stop: threading.Event) -> Ended:
    """Start the tree and wait until nothing of it is left.

    `output` gets what it prints, chunk by chunk, in another thread. Where `stop` is set or the time limit
    passes, every process of the tree is ended: SIGTERM, then SIGKILL after the order's grace.
    """
    keeper = start(order)
    watchdog, printed = cast("IO[bytes]", keeper.stdin), cast("IO[bytes]", keeper.stdout)
    reader = threading.Thread(target=pump, args=(printed.fileno(), output), daemon=True)
    reader.start()
    until = time.monotonic() + order.time_limit
    try:
        ended = wait(keeper.pid, until, stop)
    finally:
        watchdog.close()
        status = keeper.wait()
        # A process that left the tree's session may hold the pipe open only until the keeper found it.
        reader.join(timeout=5)
        if not reader.is_alive():
            printed.close()
    return Ended(status, timed_out=ended == "time", stopped=ended == "stop")


def start(order: Order) -> subprocess.Popen[bytes]:
    """The keeper of the tree, under way."""
    options = {"grace": order.grace, "limits": order.limits.by_name(), "lock": order.lock}
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(KEEPER), json.dumps(options), *order.command],
        cwd=order.folder,
        env=dict(order.environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=() if order.lock is None else (order.lock,),
    )


def wait(process: int, until: float, stop: threading.Event) -> str:
    """Until the process ends ("end"), the time comes ("time"), or the stop is set ("stop")."""
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
        return "stop"
    finally:
        os.close(descriptor)


def pump(descriptor: int, output: Callable[[bytes], None]) -> None:
    """Read to the end, always: a tree whose output nobody takes would stand still."""
    while chunk := os.read(descriptor, 65536):
        output(chunk)
