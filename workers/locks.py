"""Advisory locks on files: they end with the process that holds them, however it ends."""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workers.errors import Stopped


@contextmanager
def attempt(path: Path) -> Iterator[int | None]:
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
def hold(path: Path, patience: float, stop: threading.Event) -> Iterator[None]:
    """Hold the lock, after `patience` seconds of waiting at most: TimeoutError then, Stopped on `stop`."""
    until = time.monotonic() + patience
    while True:
        with attempt(path) as held:
            if held is not None:
                yield
                return
        if time.monotonic() >= until:
            raise TimeoutError(f"another process holds {path.name}")
        if stop.wait(0.2):
            raise Stopped
