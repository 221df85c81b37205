"""Advisory locks on files: they end with the process that holds them, however it ends."""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dashboard.repositories.errors import Stopped


@contextmanager
def try_lock(path: Path) -> Iterator[int | None]:
    """Hold the lock if nobody else does: its file descriptor, or None at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            # Not unlocked by hand: a process that inherited the descriptor goes on holding the lock.
            yield file.fileno()


@contextmanager
def hold_lock(path: Path, patience: float, stop: threading.Event) -> Iterator[None]:
    """Hold the lock, after `patience` seconds of waiting at most: TimeoutError then, Stopped on `stop`."""
    until = time.monotonic() + patience
    while True:
        with try_lock(path) as descriptor:
            if descriptor is not None:
                yield
                return
        if time.monotonic() >= until:
            raise TimeoutError(f"another process holds {path.name}")
        if stop.wait(0.1):
            raise Stopped
