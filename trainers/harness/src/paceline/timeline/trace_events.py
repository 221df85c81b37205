"""The events of a Kineto trace (torch.profiler's Chrome trace), typed: times in seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

# The ranges that the profiled process opens around our marks: see `measured/profiling.py`.
PHASE_PREFIX = "phase: "
STEP_PREFIX = "step: "
# What torch itself puts around the fetching of a DataLoader's batch.
FETCH_PREFIX = "enumerate(DataLoader)#"
# In the name of a fetch without workers, where the loop itself makes the batch.
OWN_FETCH = "SingleProcess"

# In the names of all of NCCL's kernels, in each of its versions.
COLLECTIVE_PREFIX = "nccl"
KERNEL, COPY, FILL = "kernel", "copy", "fill"
_ACTIVITIES = {"kernel": KERNEL, "gpu_memcpy": COPY, "gpu_memset": FILL}
_CALLS = frozenset({"cuda_runtime", "cuda_driver"})


@dataclass(frozen=True, slots=True)
class HostRange:
    """What one thread of the host did: an operation of PyTorch, a phase, a step, a fetch."""

    name: str
    start: float
    end: float
    thread: int


@dataclass(frozen=True, slots=True)
class HostCall:
    """A call of the CUDA runtime or driver; its correlation names what it started on the device."""

    name: str
    start: float
    end: float
    thread: int
    correlation: int


@dataclass(frozen=True, slots=True)
class DeviceActivity:
    """What a device did: a kernel, a copy or the filling of memory."""

    name: str
    kind: str
    start: float
    end: float
    device: int
    correlation: int

    @property
    def is_collective(self) -> bool:
        """Whether it is a kernel of NCCL: it sends, and waits for the other ranks' kernels."""
        return self.kind == KERNEL and self.name.startswith(COLLECTIVE_PREFIX)


@dataclass(slots=True)
class Trace:
    """All that counts of a trace, each list by its start."""

    steps: list[HostRange] = field(default_factory=list)
    phases: list[HostRange] = field(default_factory=list)
    fetches: list[HostRange] = field(default_factory=list)
    operations: list[HostRange] = field(default_factory=list)
    calls: list[HostCall] = field(default_factory=list)
    activities: list[DeviceActivity] = field(default_factory=list)

    @property
    def window(self) -> tuple[float, float]:
        """From the first step's begin to the last one's end."""
        return self.steps[0].start, max(step.end for step in self.steps)


def read_trace(raw: Mapping[str, Any]) -> Trace:
    """Read a Chrome trace as Kineto writes it; what isn't an event with a length is left out."""
    trace = Trace()
    complete = [event for event in raw.get("traceEvents", ()) if _is_complete(event)]
    origin = min((event["ts"] for event in complete), default=0.0)
    for event in complete:
        start = (event["ts"] - origin) / 1e6
        _add_event(trace, event, start, start + max(event["dur"], 0) / 1e6)
    lists: Iterable[list[Any]] = (
        *(trace.steps, trace.phases, trace.fetches),
        *(trace.operations, trace.calls, trace.activities),
    )
    for events in lists:
        # Of two that begin together the longer one is around the other.
        events.sort(key=lambda event: (event.start, -event.end))
    return trace


def _is_complete(event: Mapping[str, Any]) -> bool:
    numbers = (event.get("ts"), event.get("dur"))
    return event.get("ph") == "X" and all(isinstance(number, int | float) for number in numbers)


def _add_event(trace: Trace, event: Mapping[str, Any], start: float, end: float) -> None:
    category, name, details = event.get("cat"), str(event.get("name", "")), event.get("args") or {}
    correlation = _as_number(details.get("correlation"))
    if category in _ACTIVITIES:
        device = _as_number(details.get("device"))
        trace.activities.append(DeviceActivity(name, _ACTIVITIES[category], start, end, device, correlation))
        return
    thread = _as_number(event.get("tid"))
    if category in _CALLS:
        trace.calls.append(HostCall(name, start, end, thread, correlation))
    elif category == "cpu_op":
        trace.operations.append(HostRange(name, start, end, thread))
    elif category == "user_annotation":
        for prefix, ranges in (
            (STEP_PREFIX, trace.steps),
            (PHASE_PREFIX, trace.phases),
            (FETCH_PREFIX, trace.fetches),
        ):
            if name.startswith(prefix):
                ranges.append(HostRange(name.removeprefix(prefix), start, end, thread))


def _as_number(value: object) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else -1
