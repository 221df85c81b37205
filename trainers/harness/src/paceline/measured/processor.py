"""The calling thread's processor: how long it waited for one, which one it runs on, and pinning it there."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from ..system.processes import read_process_stat

# A repetition whose thread waited longer than this share of its window was disturbed by other work.
CONTENTION_SHARE = 0.1


def processor_wait_seconds() -> float:
    """Return the seconds that this thread was runnable but not running; 0 where the kernel can't say."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def processor_seconds(pid: int) -> float | None:
    """Return the seconds that a process has used so far; None where it is gone or the kernel can't say."""
    stat = read_process_stat(pid)
    return stat.seconds if stat else None


def current_processor() -> int | None:
    """Return the number of the processor that this thread runs on; None where the kernel can't say."""
    stat = read_process_stat("thread-self")
    return stat.processor if stat else None


class ProcessorPin:
    """Keeps this thread on one processor, until `release`."""

    def __init__(self) -> None:
        self._before: set[int] | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.release)

    def pin_to(self, processor: int) -> None:
        """Pin the thread to this processor, if the process may use it."""
        if self._before is None and hasattr(os, "sched_setaffinity"):
            self._before = os.sched_getaffinity(0)
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, {processor} & self._before)

    def release(self) -> None:
        """Let this thread, and those that it has started meanwhile, use what they might before."""
        before, self._before = self._before, None
        if before is not None:
            for thread in _thread_ids():
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(thread, before)


def _thread_ids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/task")]  # noqa: PTH208  # names are wanted
    except OSError:
        return [0]
