"""The CUDA device as the measured process sees it: event times of phases, memory, waiting.

Torch is used when the measured code has imported it, and never imported here.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from time import perf_counter
from types import TracebackType
from typing import Any

from ..statistics import median
from .phase_nodes import PhaseNode, set_borders

SAMPLED_STEPS = 200
# So many steps are sampled at least, whatever they cost.
FEWEST_SAMPLED_STEPS = 20
# Of the steps' time, what recording may add to it in the mean.
MOST_COST = 0.01
EVENTS_LIMIT = 8_192
EVENTS_PER_STEP = 4_096
UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
COST_GROUPS, COST_EVENTS = 9, 8
# The name of torch's caching allocator, the variables that set it up, and what may stand there.
NATIVE = "native"
ALLOCATOR_SETTINGS = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
EXPANDABLE = re.compile(r"expandable_segments\s*:\s*(true|1)", re.IGNORECASE)


def is_device_used() -> bool:
    """Whether the code has started to use a CUDA device."""
    torch = sys.modules.get("torch")
    # The cheaper test first.
    return bool(torch is not None and torch.cuda.is_initialized() and torch.cuda.is_available())


def synchronize_device(used: Sequence[int] | None = None) -> None:
    """Wait for every device that the code computes on; only ever called outside a step.

    `used`: which they are, where that was looked up before.
    """
    if is_device_used() and not _is_capturing_graph():
        cuda = sys.modules["torch"].cuda
        # Code that says `cuda:1` everywhere leaves another device the current one.
        for device in sorted({cuda.current_device(), *(used_devices() if used is None else used)}):
            cuda.synchronize(device)


def is_captured() -> bool:
    """Whether what the code launches now becomes a part of a CUDA graph: no event may be asked then."""
    return is_device_used() and _is_capturing_graph()


def peak_device_memory() -> dict[str, int] | None:
    """Return the largest bytes allocated and reserved so far, or None without a device or its statistics.

    `inactive_split` are those of free parts of blocks that are partly in use, which nobody else can be given:
    what the allocator's fragmentation holds. Of several devices it is the one that most was reserved on.
    """
    if not is_device_used() or not _has_memory_statistics():
        return None
    cuda = sys.modules["torch"].cuda
    devices = used_devices() or [cuda.current_device()]
    fullest = max(devices, key=cuda.max_memory_reserved)
    peaks = {
        "allocated": cuda.max_memory_allocated(fullest),
        "reserved": cuda.max_memory_reserved(fullest),
    }
    # CUDA's own allocator splits no blocks, and of segments that expand torch counts none: it says 0.
    if cuda.get_allocator_backend() != NATIVE or _expands_segments():
        return peaks
    return {**peaks, "inactive_split": cuda.memory_stats(fullest)["inactive_split_bytes.all.peak"]}


def _has_memory_statistics() -> bool:
    """Whether the allocator tells what it holds: one of the code's own (`CUDAPluggableAllocator`) doesn't.

    Nor does torch's own where it is set to keep nothing (PYTORCH_NO_CUDA_MEMORY_CACHING): it says 0.
    """
    cuda = sys.modules["torch"].cuda
    try:
        cuda.memory_reserved(cuda.current_device())
    except RuntimeError:
        return False
    return "PYTORCH_NO_CUDA_MEMORY_CACHING" not in os.environ


def _expands_segments() -> bool:
    """Whether torch's allocator was set so, which scripts do before they import it."""
    return any(EXPANDABLE.search(os.environ.get(name, "")) for name in ALLOCATOR_SETTINGS)


def used_devices() -> list[int]:
    """Return the devices, as CUDA counts them, on which this process holds memory.

    The current one where the allocator doesn't tell.
    """
    if not is_device_used():
        return []
    cuda = sys.modules["torch"].cuda
    if not _has_memory_statistics():
        return [cuda.current_device()]
    return [index for index in range(cuda.device_count()) if cuda.memory_reserved(index)]


def device_identities(devices: Sequence[int]) -> list[str | None]:
    """Return each device's UUID without NVML's prefix, whatever the process counts as its first device.

    None where this version of torch doesn't tell it.
    """
    cuda = sys.modules["torch"].cuda if devices else None
    identities = (
        [str(getattr(cuda.get_device_properties(device), "uuid", "")) for device in devices] if cuda else []
    )
    return [identity.lower() if UUID.fullmatch(identity) else None for identity in identities]


def device_name() -> str | None:
    """Return the device that the code computes on, as `cuda:1 NVIDIA H100`; None without one."""
    if not is_device_used():
        return None
    cuda = sys.modules["torch"].cuda
    current, used = cuda.current_device(), used_devices()
    number = used[0] if used and current not in used else current
    return f"cuda:{number} {cuda.get_device_name(number)}"


class PhaseEvents:
    """Pairs of CUDA events around phases of a bounded number of steps, read after the window.

    An event is a mark in the current stream: recording it waits for nothing. They are made before the window,
    since making one in a step costs more than recording it, and each is recorded once in it. The time between
    the two marks of a phase is what the stream took from one to the other, idle spells included.
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
        self._streams = CurrentStreams()
        self._chosen = 0
        # Its own: the script's numbers stay what they are, and repetitions sample alike.
        self._random = random.Random(0)

    def start(self, steps: int) -> bool:
        """Spread the sampled steps over the window; return whether there is a device since this call."""
        if self.every or not is_device_used():
            return False
        self._steps = steps
        self.every = max(1, math.ceil(steps / SAMPLED_STEPS))
        return True

    def create_events(self, phases: int, phases_per_second: float | None = None) -> None:
        """Make the events that a window with so many phases in each sampled step needs, within the limit.

        Where it is known how many phases the steps enter in a second, so few steps are sampled that recording
        costs them no more than MOST_COST of their time.
        """
        if not self.every:
            return
        if used_devices() not in ([], [sys.modules["torch"].cuda.current_device()]):
            # Marks in the current device's stream tell nothing of what another device computes.
            self.every = 0
            return
        if _is_capturing_graph():
            # What is recorded now becomes a part of the graph: each event is made when it is needed.
            return
        wanted = min(EVENTS_LIMIT, 2 * phases * min(self._steps, SAMPLED_STEPS))
        self._unused = [_create_event() for _ in range(wanted)]
        for event in self._unused:
            # It is the first record that asks the driver for the event.
            self._streams.record(event)
        if phases_per_second is not None and self._unused:
            share = 2 * phases_per_second * self._measure_cost()
            fewest = max(1, self._steps // FEWEST_SAMPLED_STEPS)
            self.every = max(self.every, min(fewest, math.ceil(share / MOST_COST)))

    def _measure_cost(self) -> float:
        """Return the seconds that recording an event takes here: the median of some groups."""
        costs = []
        for group in range(COST_GROUPS):
            events = self._unused[group * COST_EVENTS : (group + 1) * COST_EVENTS] or self._unused
            began = perf_counter()
            for event in events:
                if not _is_capturing_graph():
                    self._streams.record(event)
            costs.append((perf_counter() - began) / len(events))
        return median(costs)

    def next_step(self, done: int) -> None:
        """Choose whether the window's next step is a sampled one: one of each stretch of `every` steps.

        Which one is drawn: a phase that comes in every fourth step is met as often as it comes, however many
        steps a stretch has.
        """
        if self.every:
            self._sampled += self.recording
            self._complete_pairs = len(self._pairs)
            room = 2 * self._complete_pairs < EVENTS_LIMIT
            if done % self.every == 0:
                stretch = min(self.every, self._steps - done)
                self._chosen = done + (self._random.randrange(stretch) if stretch > 1 else 0)
            self.recording = room and done < self._steps and done == self._chosen

    def record_event(self) -> Any:
        """Return an event that was recorded on the current stream, or None where none may be."""
        # A mark inside a captured graph is no mark in time, and can't be read afterwards.
        if _is_capturing_graph():
            return None
        event = self._unused.pop() if self._unused else _create_event()
        try:
            self._streams.record(event)
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
                span = begin.elapsed_time(end)
                # A phase that is left in another stream may end there before it began here.
                if span >= 0:
                    times[path].append(span)
        self._milliseconds = {path: math.fsum(spans) for path, spans in times.items()}
        self._pairs, self._unused = [], []

    def seconds_per_step(self, path: str) -> float | None:
        """Return the phase's device time per sampled step; None without a device."""
        if not self._sampled or path not in self._milliseconds:
            return None
        return self._milliseconds[path] / 1000 / self._sampled


class CurrentStreams:
    """Records events in the current stream, of which torch makes a new object whenever it is asked.

    Making it takes longer than recording (4 and 1.5 us on an H100's host): one is kept for each stream.
    """

    def __init__(self) -> None:
        self._streams: dict[tuple[int, int], Any] = {}
        self._calls: tuple[Callable[[], int], Callable[[int], int]] | None = None

    def record(self, event: Any) -> None:
        """Record an event; raises RuntimeError where it belongs to another device."""
        if self._calls is None:
            # Torch's compiler asks for streams by these names; where they aren't, torch asks by itself.
            binding: Any = getattr(sys.modules["torch"], "_C", None)
            names = ("_cuda_getDevice", "_cuda_getCurrentRawStream")
            if not all(hasattr(binding, name) for name in names):
                event.record()
                return
            self._calls = (binding._cuda_getDevice, binding._cuda_getCurrentRawStream)
        current_device, raw_stream = self._calls
        device = current_device()
        key = device, raw_stream(device)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = sys.modules["torch"].cuda.current_stream()
        event.record(stream)


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
