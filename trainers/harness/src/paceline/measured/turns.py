"""Two measured processes that take their steps in turn, a block each, so that noise meets both alike.

What slows a process (another machine on the same host, a busy sibling core) does so for seconds at a time. Of
two windows that are measured one after the other it meets one; of two that alternate thirty times a second it
meets both. So do the differences between processors, where both stay on the same one.

Each process reads its own pipe and writes the other's. The first one runs for a block and says how many steps
it took; the second takes as many. So both come to their windows, and to the ends of them, together.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import struct
import threading
from pathlib import Path
from time import perf_counter

from . import device, processor

# The pipes' names in their folder; who reads FIRST begins.
FIRST, SECOND = "first", "second"
# Shorter turns meet the noise more evenly, and begin more often with caches that the other one has filled.
# That costs time, of both alike, so that a step seems smaller: in turns of 10 ms by a tenth of it.
BLOCK_SECONDS = 0.03
# Steps that were taken, or OVER; and the processor that both stay on, or ANY.
_TOKEN = struct.Struct("qq")
_OVER = _ANY = -1


class Turns:
    """This process's side. `pipe` is what it reads, the other one's lies beside it.

    `one_core`: the code has a single thread, which is to stay on the other one's processor.
    """

    def __init__(self, pipe: Path, *, one_core: bool) -> None:
        self.paused = 0.0
        """Seconds for which it was the other's turn."""
        self.waited = 0.0
        """Seconds of them that this thread was ready to run and didn't.

        On one processor the one that is woken may run before the other one has gone to sleep, which it then
        does in the midst of the first one's turn.
        """
        self._pipe = pipe
        self._leads = pipe.name == FIRST
        self._one_core = one_core
        self._processor = _ANY
        self._stay = processor.Stay()
        self._steps = 0
        self._until = 0.0  # The moment at which the leader hands over.
        self._wanted = math.inf  # The steps after which the other one does.
        self._reads = self._writes = -1

    def begin(self) -> None:
        """Wait until the other process has come to its loop too, then for the first turn."""
        other = self._pipe.with_name(SECOND if self._leads else FIRST)
        for path in (self._pipe, other):
            with contextlib.suppress(FileExistsError):
                os.mkfifo(path, 0o600)
        self._reads = os.open(self._pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        # Waits for the other one to read.
        self._writes = os.open(other, os.O_WRONLY | os.O_CLOEXEC)
        if self._leads:
            found = processor.current() if self._one_core else None
            self._start(0, _ANY if found is None else found)
        else:
            self._pause()

    def end_step(self, complete: bool) -> None:
        """Note that a step ended; where the block did, return when it is this process's turn again.

        Nobody is left waiting by a process whose window is complete.
        """
        if self._reads < 0:
            return
        self._steps += 1
        if complete:
            self._finish()
        elif self._steps >= self._wanted or (self._leads and perf_counter() >= self._until):
            self._hand_over()

    def _hand_over(self) -> None:
        if _is_alone():
            self._pause(self._steps)
        else:
            # What it started would go on while it waits, beside the other's steps: it runs to its end first.
            self._stay.end()
            self._wanted = self._until = math.inf

    def _finish(self) -> None:
        if self._leads:
            # What follows the loop isn't to run beside the other's last block.
            self._pause(self._steps)
        self._tell(_OVER)
        self._go_alone()

    def _tell(self, steps: int) -> None:
        # The other one may be gone.
        with contextlib.suppress(BrokenPipeError):
            if self._writes >= 0:
                os.write(self._writes, _TOKEN.pack(steps, self._processor))

    def _pause(self, steps: int | None = None) -> None:
        """Hand over after so many steps, if it is this one's turn, and sleep until it is again."""
        since, waited = perf_counter(), processor.waited()
        if steps is not None:
            self._tell(steps)
        poll = select.poll()
        poll.register(self._reads, select.POLLIN)
        poll.poll()
        told = os.read(self._reads, _TOKEN.size)
        self.waited += processor.waited() - waited
        self.paused += perf_counter() - since
        taken, chosen = _TOKEN.unpack(told) if told else (_OVER, _ANY)
        if taken == _OVER:
            self._go_alone()
        else:
            self._start(taken, chosen)

    def _start(self, wanted: int, chosen: int) -> None:
        if chosen != _ANY and self._processor == _ANY and self._one_core and _is_alone():
            self._processor = chosen
            self._stay.on(chosen)
        self._steps = 0
        if self._leads:
            self._until = perf_counter() + BLOCK_SECONDS
        else:
            self._wanted = wanted

    def _go_alone(self) -> None:
        """Take all steps that are left without a break."""
        self._stay.end()
        for descriptor in (self._reads, self._writes):
            if descriptor >= 0:
                os.close(descriptor)
        self._reads = self._writes = -1


def _is_alone() -> bool:
    """Whether nothing of this process goes on while it waits: no thread, no process of its own, no device."""
    if threading.active_count() > 1 or device.used():
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False
