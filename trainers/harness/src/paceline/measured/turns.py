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

from . import cuda_device, processor

# The pipes' names in their folder; who reads FIRST begins.
FIRST, SECOND = "first", "second"
# Shorter turns meet the noise more evenly, and begin more often with caches that the other one has filled.
# That costs time, of both alike, so that a step seems smaller: in turns of 10 ms by a tenth of it.
BLOCK_SECONDS = 0.03
# Steps that were taken, or OVER; and the processor that both stay on, or ANY.
_TOKEN = struct.Struct("qq")
_OVER = _ANY = -1


class Turns:
    """One of the two processes. `pipe` is the one that it reads; the other process's lies beside it.

    `one_core` says that the code has a single thread, which stays on the other process's processor.
    """

    def __init__(self, pipe: Path, *, one_core: bool) -> None:
        self.paused = 0.0
        """Seconds for which it was the other's turn."""
        self.waited = 0.0
        """Seconds of them for which this thread was runnable but not running.

        On one processor the process that is woken may run before the other one has gone to sleep, so that the
        other one does so in the midst of its turn.
        """
        self._pipe = pipe
        self._leads = pipe.name == FIRST
        self._one_core = one_core
        self._processor = _ANY
        self._pin = processor.ProcessorPin()
        self._steps = 0
        self._turn_end = 0.0  # The leader hands over at this moment.
        self._turn_steps = math.inf  # The other one hands over after so many steps.
        self._read_end = self._write_end = -1

    def begin(self) -> None:
        """Wait until the other process has come to its loop too, then for the first turn."""
        other = self._pipe.with_name(SECOND if self._leads else FIRST)
        for path in (self._pipe, other):
            with contextlib.suppress(FileExistsError):
                os.mkfifo(path, 0o600)
        self._read_end = os.open(self._pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        # Waits for the other one to read.
        self._write_end = os.open(other, os.O_WRONLY | os.O_CLOEXEC)
        if self._leads:
            current = processor.current_processor() if self._one_core else None
            self._start_turn(0, _ANY if current is None else current)
        else:
            self._wait_for_turn()

    def end_step(self, complete: bool) -> None:
        """Note that a step ended; where the block did, return when it is this process's turn again.

        Nobody is left waiting by a process whose window is complete.
        """
        if self._read_end < 0:
            return
        self._steps += 1
        if complete:
            self._finish()
        elif self._steps >= self._turn_steps or (self._leads and perf_counter() >= self._turn_end):
            self._hand_over()

    def _hand_over(self) -> None:
        if _can_be_paused():
            self._wait_for_turn(self._steps)
        else:
            # What it started would go on while it waits, beside the other's steps: it runs to its end first.
            self._pin.release()
            self._turn_steps = self._turn_end = math.inf

    def _finish(self) -> None:
        if self._leads:
            # What follows the loop isn't to run beside the other's last block.
            self._wait_for_turn(self._steps)
        self._send(_OVER)
        self._continue_alone()

    def _send(self, steps: int) -> None:
        # The other one may be gone.
        with contextlib.suppress(BrokenPipeError):
            if self._write_end >= 0:
                os.write(self._write_end, _TOKEN.pack(steps, self._processor))

    def _wait_for_turn(self, steps: int | None = None) -> None:
        """Hand over after so many steps, if it is this one's turn, and sleep until it is again."""
        since, waited = perf_counter(), processor.processor_wait_seconds()
        if steps is not None:
            self._send(steps)
        poll = select.poll()
        poll.register(self._read_end, select.POLLIN)
        poll.poll()
        token = os.read(self._read_end, _TOKEN.size)
        self.waited += processor.processor_wait_seconds() - waited
        self.paused += perf_counter() - since
        taken, chosen = _TOKEN.unpack(token) if token else (_OVER, _ANY)
        if taken == _OVER:
            self._continue_alone()
        else:
            self._start_turn(taken, chosen)

    def _start_turn(self, wanted: int, chosen: int) -> None:
        if chosen != _ANY and self._processor == _ANY and self._one_core and _can_be_paused():
            self._processor = chosen
            self._pin.pin_to(chosen)
        self._steps = 0
        if self._leads:
            self._turn_end = perf_counter() + BLOCK_SECONDS
        else:
            self._turn_steps = wanted

    def _continue_alone(self) -> None:
        """Take all steps that are left without a break."""
        self._pin.release()
        for descriptor in (self._read_end, self._write_end):
            if descriptor >= 0:
                os.close(descriptor)
        self._read_end = self._write_end = -1


def _can_be_paused() -> bool:
    """Whether waiting stops all of the work: there is no other thread, no child process, no device in use."""
    if threading.active_count() > 1 or cuda_device.is_device_used():
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False
