"""The CUDA device as the measured process sees it: event times of phases, memory, waiting.

Torch is used when the measured code has imported it, and never imported here.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections import defaultdict
from types import TracebackType
from typing import Any

from .marks import Node, set_borders

SAMPLED_STEPS = 200
EVENTS_LIMIT = 8_192
EVENTS_PER_STEP = 4_096


def used() -> bool:
    """Whether the code has started to use a CUDA device."""
    torch = sys.modules.get("torch")
    # The cheaper question first.
    return bool(torch is not None and torch.cuda.is_initialized() and torch.cuda.is_available())


def synchronize() -> None:
    """Wait for the device; only ever called outside a step."""
    if used() and not _capturing():
        sys.modules["torch"].cuda.synchronize()


def memory() -> dict[str, int] | None:
    """Return the largest bytes allocated and reserved so far, or None without a device."""
    if not used():
        return None
    cuda = sys.modules["torch"].cuda
    return {"allocated": cuda.max_memory_allocated(), "reserved": cuda.max_memory_reserved()}


class Events:
    """Pairs of CUDA events around phases of a bounded number of steps, resolved after the window.

    An event is a mark in the current stream: recording it waits for nothing. They are made before the window,
    since making one in a step costs more than recording it, and each is recorded once. The time between the
    two marks of a phase is what the stream took from one to the other, idle spells included.
    """

    def __init__(self) -> None:
        self.recording = False
        self.every = 0
        self._steps = 0
        self._sampled = 0
        self._spare: list[Any] = []
        self._pairs: list[tuple[str, Any, Any]] = []
        self._whole = 0
        self._milliseconds: dict[str, float] = {}

    def start(self, steps: int) -> bool:
        """Spread the sampled steps over the window; return whether there is a device since this call."""
        if self.every or not used():
            return False
        self._steps = steps
        self.every = max(1, math.ceil(steps / SAMPLED_STEPS))
        return True

    def prepare(self, phases: int) -> None:
        """Make the events that a window with so many phases in each sampled step needs, within the limit."""
        if self.every:
            wanted = min(EVENTS_LIMIT, 2 * phases * min(self._steps, SAMPLED_STEPS))
            self._spare = [_new() for _ in range(wanted)]
            for event in self._spare:
                # It is the first record that asks the driver for the event.
                event.record()

    def next_step(self, done: int) -> None:
        """Decide whether the window's next step is a sampled one."""
        if self.every:
            self._sampled += self.recording
            self._whole = len(self._pairs)
            room = 2 * self._whole < EVENTS_LIMIT
            self.recording = room and done < self._steps and done % self.every == 0

    def event(self) -> Any:
        """Return an event that was recorded on the current stream, or None where none may be."""
        # A mark inside a captured graph is no mark in time, and can't be read afterwards.
        if _capturing():
            return None
        event = self._spare.pop() if self._spare else _new()
        try:
            event.record()
        except RuntimeError:
            # The spare ones belong to the device that was the current one when they were made.
            return None
        return event

    def add(self, path: str, begin: Any) -> None:
        """Close a pair that was opened by `event`, unless its window is over."""
        if not self.recording:
            return
        if 2 * len(self._pairs) >= EVENTS_LIMIT + EVENTS_PER_STEP:
            # A step with a flood of phases is left out as a whole: half of its time would be wrong.
            self.recording = False
            del self._pairs[self._whole :]
            return
        end = self.event()
        if end is not None:
            self._pairs.append((path, begin, end))

    def resolve(self) -> None:
        """Read all pairs and free them; call it once the device has been waited for."""
        self.recording = False
        found: defaultdict[str, list[float]] = defaultdict(list)
        for path, begin, end in self._pairs:
            # Two events of different devices have no time between them.
            with contextlib.suppress(RuntimeError, ValueError):
                found[path].append(begin.elapsed_time(end))
        self._milliseconds = {path: math.fsum(times) for path, times in found.items()}
        self._pairs, self._spare = [], []

    def seconds_per_step(self, path: str) -> float | None:
        """Return the phase's device time per sampled step; None without a device."""
        if not self._sampled or path not in self._milliseconds:
            return None
        return self._milliseconds[path] / 1000 / self._sampled


def _new() -> Any:
    return sys.modules["torch"].cuda.Event(enable_timing=True)


def _capturing() -> bool:
    return bool(sys.modules["torch"].cuda.is_current_stream_capturing())


def watch(node: Node, events: Events) -> None:
    """Record events at the borders of the node's phase, in the sampled steps."""
    enter, leave = node.__enter__, node.__exit__
    begin: Any = None

    def enter_watched() -> None:
        nonlocal begin
        begin = events.event() if events.recording else None
        enter()

    def leave_watched(
        kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        leave(kind, error, trace)
        if begin is not None:
            events.add(node.path, begin)

    set_borders(node, enter_watched, leave_watched)
