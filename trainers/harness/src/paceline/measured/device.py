"""The CUDA device as the measured process sees it: event times of phases, memory, waiting.

Torch is used when the measured code has imported it, and never imported here.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .timing import TimedNode

SAMPLED_STEPS = 200


def used() -> bool:
    """Whether the code has started to use a CUDA device."""
    torch = sys.modules.get("torch")
    return bool(torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized())


def synchronize() -> None:
    """Wait for the device; only ever called outside a step."""
    if used():
        sys.modules["torch"].cuda.synchronize()


def memory() -> dict[str, int] | None:
    """Return the largest bytes allocated and reserved so far, or None without a device."""
    if not used():
        return None
    cuda = sys.modules["torch"].cuda
    return {"allocated": cuda.max_memory_allocated(), "reserved": cuda.max_memory_reserved()}


class Events:
    """Pairs of CUDA events around phases of a bounded number of steps, resolved after the window."""

    def __init__(self) -> None:
        self.recording = False
        self._steps = 0
        self._every = 0
        self._sampled = 0
        self._pairs: defaultdict[str, list[tuple[Any, Any]]] = defaultdict(list)

    def start(self, steps: int) -> bool:
        """Return whether there is a device, and if so spread the sampled steps over the window."""
        if not used():
            return False
        self._steps = steps
        self._every = max(1, math.ceil(steps / SAMPLED_STEPS))
        return True

    def next_step(self, done: int) -> None:
        """Decide whether the window's next step is a sampled one."""
        if self._every:
            self.recording = done < self._steps and done % self._every == 0
            self._sampled += self.recording

    def event(self) -> Any:
        """Return an event that was recorded on the current stream."""
        event = sys.modules["torch"].cuda.Event(enable_timing=True)
        event.record()
        return event

    def add(self, path: str, begin: Any) -> None:
        """Close a pair that was opened by `event`."""
        self._pairs[path].append((begin, self.event()))

    def seconds_per_step(self, path: str) -> float | None:
        """Return the phase's device time per sampled step; None without a device."""
        if not self._sampled or path not in self._pairs:
            return None
        milliseconds = math.fsum(begin.elapsed_time(end) for begin, end in self._pairs[path])
        return milliseconds / 1000 / self._sampled


def timed(base: type[TimedNode], events: Events) -> type[TimedNode]:
    """Return a node class that also records events in the sampled steps."""

    class DeviceNode(base):  # type: ignore[valid-type,misc]
        __slots__ = ("begin",)

        def __enter__(self) -> None:
            self.begin = events.event() if events.recording else None
            super().__enter__()

        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> None:
            super().__exit__(kind, error, trace)
            if self.begin is not None:
                events.add(self.path, self.begin)

    return DeviceNode
