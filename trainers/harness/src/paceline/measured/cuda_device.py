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

from .phase_nodes import PhaseNode, set_borders

SAMPLED_STEPS = 200
EVENTS_LIMIT = 8_192
EVENTS_PER_STEP = 4_096


def is_device_used() -> bool:
    """Whether the code has started to use a CUDA device."""
    torch = sys.modules.get("torch")
    # The cheaper test first.
    return bool(torch is not None and torch.cuda.is_initialized() and torch.cuda.is_available())


def synchronize_device() -> None:
    """Wait for the device; only ever called outside a step."""
    if is_device_used() and not _is_capturing_graph():
        sys.modules["torch"].cuda.synchronize()


def peak_device_memory() -> dict[str, int] | None:
    """Return the largest bytes allocated and reserved so far, or None without a device."""
    if not is_device_used():
        return None
    cuda = sys.modules["torch"].cuda
    return {"allocated": cuda.max_memory_allocated(), "reserved": cuda.max_memory_reserved()}


def device_name() -> str | None:
    """Return the device that the code computes on, as `cuda:1 NVIDIA H100`; None without one."""
    if not is_device_used():
        return None
    cuda = sys.modules["torch"].cuda
    number = cuda.current_device()
    return f"cuda:{number} {cuda.get_device_name(number)}"


class PhaseEvents:
    """Pairs of CUDA events around phases of a bounded number of steps, read after the window.

    An event is a mark in the current stream: recording it waits for nothing. They are made before the window,
    since making one in a step costs more than recording it, and each is recorded once. The time between the
    two marks of a phase is what the stream took from one to the other, idle spells included.
    """

    def __init__(self) -> None:
        self.recording = False
        self.every = 0
        self._steps = 0
        self._sampled = 0
        self._unused: list[Any] = []
        self._pairs: list[tuple[str, Any, Any]] = []
        self._complete_pairs = 0
        self._milliseconds: dict[str, float] = {}

    def start(self, steps: int) -> bool:
        """Spread the sampled steps over the window; return whether there is a device since this call."""
        if self.every or not is_device_used():
            return False
        self._steps = steps
        self.every = max(1, math.ceil(steps / SAMPLED_STEPS))
        return True

    def create_events(self, phases: int) -> None:
        """Make the events that a window with so many phases in each sampled step needs, within the limit."""
        if self.every:
            wanted = min(EVENTS_LIMIT, 2 * phases * min(self._steps, SAMPLED_STEPS))
            self._unused = [_create_event() for _ in range(wanted)]
            for event in self._unused:
                # It is the first record that asks the driver for the event.
                event.record()

    def next_step(self, done: int) -> None:
        """Choose whether the window's next step is a sampled one."""
        if self.every:
            self._sampled += self.recording
            self._complete_pairs = len(self._pairs)
            room = 2 * self._complete_pairs < EVENTS_LIMIT
            self.recording = room and done < self._steps and done % self.every == 0

    def record_event(self) -> Any:
        """Return an event that was recorded on the current stream, or None where none may be."""
        # A mark inside a captured graph is no mark in time, and can't be read afterwards.
        if _is_capturing_graph():
            return None
        event = self._unused.pop() if self._unused else _create_event()
        try:
            event.record()
        except RuntimeError:
            # The unused ones belong to the device that was the current one when they were made.
            return None
        return event

    def close_pair(self, path: str, begin: Any) -> None:
        """Close a pair that was opened by `record_event`, unless its window is over."""
        if not self.recording:
            return
        if 2 * len(self._pairs) >= EVENTS_LIMIT + EVENTS_PER_STEP:
            # A step with a flood of phases is left out as a whole: half of its time would be wrong.
            self.recording = False
            del self._pairs[self._complete_pairs :]
            return
        end = self.record_event()
        if end is not None:
            self._pairs.append((path, begin, end))

    def read_pairs(self) -> None:
        """Read all pairs and free them; call it once the device has been waited for."""
        self.recording = False
        times: defaultdict[str, list[float]] = defaultdict(list)
        for path, begin, end in self._pairs:
            # Two events of different devices have no time between them.
            with contextlib.suppress(RuntimeError, ValueError):
                times[path].append(begin.elapsed_time(end))
        self._milliseconds = {path: math.fsum(spans) for path, spans in times.items()}
        self._pairs, self._unused = [], []

    def seconds_per_step(self, path: str) -> float | None:
        """Return the phase's device time per sampled step; None without a device."""
        if not self._sampled or path not in self._milliseconds:
            return None
        return self._milliseconds[path] / 1000 / self._sampled


def _create_event() -> Any:
    return sys.modules["torch"].cuda.Event(enable_timing=True)


def _is_capturing_graph() -> bool:
    return bool(sys.modules["torch"].cuda.is_current_stream_capturing())


def record_phase_events(node: PhaseNode, events: PhaseEvents) -> None:
    """Record events at the borders of the node's phase, in the sampled steps."""
    enter, leave = node.__enter__, node.__exit__
    begin: Any = None

    def enter_watched() -> None:
        nonlocal begin
        begin = events.record_event() if events.recording else None
        enter()

    def leave_watched(
        kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        leave(kind, error, trace)
        if begin is not None:
            events.close_pair(node.path, begin)

    set_borders(node, enter_watched, leave_watched)
