"""Kernels, copies and operations of a profiled window as rows: name, phase, number and seconds per step."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .host_phases import PhaseClock
from .trace_events import DeviceActivity, HostCall, HostRange, Trace

ROW_LIMIT = 200
NAME_LIMIT = 200
OPERATION = "operation"

Raw = dict[str, Any]
# Of autograd's own: what they call says more.
_WRAPPERS = ("autograd::engine::", "torch::autograd::", "profiler::")
_NODE = re.compile(r"Backward\d*$")


def device_rows(
    trace: Trace, activities: Sequence[DeviceActivity], phases: PhaseClock, window: tuple[float, float]
) -> list[Raw]:
    """Return a row for each kernel, copy and filling by phase: that in which the host launched it."""
    launches = {call.correlation: call for call in trace.calls if call.correlation >= 0}
    callers = OuterOperations(trace.operations)
    rows: dict[tuple[str, str, str, str], Raw] = {}
    for activity in activities:
        seconds = min(activity.end, window[1]) - max(activity.start, window[0])
        if seconds <= 0:
            continue
        launch = launches.get(activity.correlation)
        phase = phases.find_phase(launch.start, launch.thread) if launch else ""
        caller = callers.find_operation(launch) if launch else ""
        key = activity.kind, shorten_kernel_name(activity.name), caller, phase
        _add_to_row(rows, key, seconds)
    return list(rows.values())


def operation_rows(trace: Trace, phases: PhaseClock, thread: int, window: tuple[float, float]) -> list[Raw]:
    """Return a row for each operation of the thread by phase, with its own time."""
    rows: dict[tuple[str, str, str, str], Raw] = {}
    for operation, own in own_times([row for row in trace.operations if row.thread == thread], window):
        key = OPERATION, operation.name[:NAME_LIMIT], "", phases.find_phase(operation.start, thread)
        _add_to_row(rows, key, own)
    return list(rows.values())


def own_times(operations: Sequence[HostRange], window: tuple[float, float]) -> list[tuple[HostRange, float]]:
    """Return each operation that begins in the window with its time without the operations inside it."""
    found: list[list[Any]] = []
    stack: list[list[Any]] = []
    for operation in operations:
        if not window[0] <= operation.start < window[1]:
            continue
        while stack and stack[-1][0].end <= operation.start:
            stack.pop()
        seconds = min(operation.end, window[1]) - operation.start
        if stack:
            stack[-1][1] -= min(operation.end, stack[-1][0].end) - operation.start
        entry = [operation, seconds]
        found.append(entry)
        stack.append(entry)
    return [(operation, max(own, 0.0)) for operation, own in found]


def _add_to_row(
    rows: dict[tuple[str, str, str, str], Raw], key: tuple[str, str, str, str], own: float
) -> None:
    kind, name, operation, phase = key
    row = rows.setdefault(
        key,
        {"kind": kind, "name": name, "operation": operation, "phase": phase, "count": 0.0, "seconds": 0.0},
    )
    row["count"] += 1
    row["seconds"] += own


def limit_rows(rows: Iterable[Mapping[str, Any]], steps: int) -> tuple[list[Raw], Raw]:
    """Return the heaviest rows per step, and the sum of all others."""
    ordered = sorted(
        ({**row, "count": row["count"] / steps, "seconds": row["seconds"] / steps} for row in rows),
        key=lambda row: (-row["seconds"], row["name"], row["phase"]),
    )
    rest = ordered[ROW_LIMIT:]
    return ordered[:ROW_LIMIT], {
        "rows": len(rest),
        "count": sum(row["count"] for row in rest),
        "seconds": sum(row["seconds"] for row in rest),
    }


def shorten_kernel_name(name: str) -> str:
    """Return a kernel's name without its result and arguments; what tells two of them apart stays."""
    short = re.sub(r"^(void|static)\s+", "", name)
    short = re.sub(r"\((anonymous namespace)\)", r"{\1}", short)
    depth = 0
    for place, letter in enumerate(short):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0 and not short.startswith(("Memcpy", "Memset")):
            short = short[:place]
            break
    short = short.replace("{anonymous namespace}::", "").replace("at::native::", "")
    return "".join(letter for letter in short if letter.isprintable())[:NAME_LIMIT] or "kernel"


class OuterOperations:
    """Finds the outermost operation of PyTorch, autograd's wrappers aside, in which a launch was made."""

    def __init__(self, operations: Sequence[HostRange]) -> None:
        self._by_thread: defaultdict[int, list[HostRange]] = defaultdict(list)
        ends: defaultdict[int, float] = defaultdict(float)
        for operation in operations:
            wrapped = operation.name.startswith(_WRAPPERS) or _NODE.search(operation.name)
            if not wrapped and operation.start >= ends[operation.thread]:
                self._by_thread[operation.thread].append(operation)
                ends[operation.thread] = operation.end
        self._starts = {
            thread: [operation.start for operation in kept] for thread, kept in self._by_thread.items()
        }

    def find_operation(self, launch: HostCall) -> str:
        """Return the name of the operation, empty where the launch was in none."""
        place = bisect_right(self._starts.get(launch.thread, ()), launch.start) - 1
        if place < 0:
            return ""
        operation = self._by_thread[launch.thread][place]
        return operation.name[:NAME_LIMIT] if launch.start < operation.end else ""
