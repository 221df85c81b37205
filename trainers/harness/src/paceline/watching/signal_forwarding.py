"""Signals that are passed on to a training that is measured in passing: it ends as it would alone."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

# What ends a training, and what schedulers of clusters send before they do.
PASSED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@contextmanager
def forward_signals(pid: int) -> Iterator[None]:
    """Send what this process is sent to the leader of a session, and leave what to do to it.

    One that this process ignores, as those under nohup do, its children ignore too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in PASSED}
    for number in PASSED:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, _make_handler(pid))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _make_handler(pid: int) -> Callable[[int, object], None]:
    def send(number: int, _frame: object) -> None:
        with suppress(ProcessLookupError, PermissionError):
            # A terminal interrupts all of a training's processes, everything else asks only the first one.
            if number == signal.SIGINT:
                os.killpg(pid, number)
            else:
                os.kill(pid, number)

    return send
