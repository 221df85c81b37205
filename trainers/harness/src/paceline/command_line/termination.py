"""Ends a measurement when it is asked to: by a signal, or by its caller's end."""

from __future__ import annotations

import os
import signal
from types import FrameType


class TerminatedError(BaseException):
    """The harness was ended by a signal; no failure that a script may survive."""


def end_on_signals() -> None:
    """Let signals that end a process raise TerminatedError, the first of them only."""

    def end(number: int, _: FrameType | None) -> None:
        # Only once: a second signal must not interrupt the ending itself.
        for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(ignored, signal.SIG_IGN)
        raise TerminatedError(f"was ended by {signal.Signals(number).name}")

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # What was started under nohup, or behind a shell's &, goes on.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)


def end_with_stdin() -> None:
    """End by SIGTERM when the process that started this one is gone and the pipe from it closes."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
