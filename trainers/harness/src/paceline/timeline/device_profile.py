"""The document's `device_profile`: what a step's time went into, from the events of a profiled window.

On a device: its kernels, and its idle time by cause. Without one: PyTorch's operations in the thread that
takes the steps, and what lay between them. The parts add up to the step; what nothing explains is said.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import idle_gaps
from .activity_rows import device_rows, limit_rows, operation_rows
from .host_phases import PhaseClock
from .idle_gaps import Idle, IdleTime
from .intervals import Interval, intersect_interval, subtract_intervals, total_length, unite_intervals
from .trace_events import KERNEL, OWN_FETCH, DeviceActivity, Trace

IDLE_LIMIT = 100
PHASE_LIMIT = 100
# In these the thread waits, and in those it runs Python.
_WAITING = (idle_gaps.DATA, idle_gaps.COLLECTIVES)
_RUNNING = (idle_gaps.HOST, idle_gaps.DATASET)
# Kernels are launched one by one, or many at once as a graph.
_LAUNCHES = ("LaunchKernel", "GraphLaunch", "LaunchKernelExC", "LaunchKernelEx", "LaunchCooperativeKernel")

Raw = dict[str, Any]


class EmptyTraceError(Exception):
    """The trace holds nothing that could be explained; the message is one sentence."""


def build_device_profile(trace: Trace, busy_share: float | None = None, *, is_rank: bool = False) -> Raw:
    """Return the profile, all numbers per step; raises EmptyTraceError.

    `busy_share` is the part of the window in which the thread of the steps ran or was ready to: without a
    device the rest was slept or waited, for whatever. `is_rank` says that phases named like collectives are
    collectives: a script without ranks may name its own so.
    """
    if not trace.steps:
        raise EmptyTraceError("the trace holds no step")
    start, end = trace.window
    if end <= start:
        raise EmptyTraceError("the trace's steps took no time")
    phases = PhaseClock(trace.phases, trace.steps[0].thread)
    activities = _activities_of_busiest_device(trace)
    if activities:
        profile = _profile_of_device(trace, activities, phases)
    else:
        profile = _profile_of_host(trace, phases, busy_share, is_rank=is_rank)
    step = (end - start) / len(trace.steps)
    unexplained = sum(row["seconds"] for row in profile["idle"] if row["cause"] == idle_gaps.UNEXPLAINED)
    return {
        **profile,
        "steps": len(trace.steps),
        "step_seconds": step,
        "explained": max(0.0, min(1.0, 1 - unexplained / step)),
    }


def _activities_of_busiest_device(trace: Trace) -> list[DeviceActivity]:
    seconds: defaultdict[int, float] = defaultdict(float)
    for activity in trace.activities:
        seconds[activity.device] += activity.end - activity.start
    busiest = max(seconds, key=lambda device: seconds[device], default=None)
    return [activity for activity in trace.activities if activity.device == busiest]


def _profile_of_device(trace: Trace, activities: Sequence[DeviceActivity], phases: PhaseClock) -> Raw:
    window, steps = trace.window, len(trace.steps)
    computing = ((row.start, row.end) for row in activities if idle_gaps.is_computing(row))
    busy = total_length(unite_intervals(computing, window)) / steps
    rows = device_rows(trace, activities, phases, window)
    kept, rest = limit_rows(rows, steps)
    launches = Counter(
        phases.find_phase(call.start, call.thread)
        for call in trace.calls
        if call.name.endswith(_LAUNCHES) and window[0] <= call.start < window[1]
    )
    return {
        "device": "cuda",
        "busy_seconds": busy,
        "launches": sum(launches.values()) / steps,
        "rows": kept,
        "rest": rest,
        "idle": _idle_rows(idle_gaps.explain_idle_time(trace, activities, phases), steps),
        "phases": _phase_rows(rows, launches, steps),
    }


def _profile_of_host(trace: Trace, phases: PhaseClock, busy_share: float | None, *, is_rank: bool) -> Raw:
    window, steps, main = trace.window, len(trace.steps), trace.steps[0].thread
    on_main_thread = [row for row in trace.operations if row.thread == main]
    busy = unite_intervals(((row.start, row.end) for row in on_main_thread), window)
    intervals = _intervals_by_cause(trace, phases, is_rank=is_rank)
    rows = operation_rows(trace, phases, main, window)
    kept, rest = limit_rows(rows, steps)
    return {
        "device": "cpu",
        "busy_seconds": total_length(busy) / steps,
        "launches": None,
        "rows": kept,
        "rest": rest,
        "idle": _idle_rows(_explain_host_gaps(busy, intervals, phases, window, busy_share), steps),
        "phases": _phase_rows(rows, Counter(), steps),
    }


def _intervals_by_cause(trace: Trace, phases: PhaseClock, *, is_rank: bool) -> dict[str, Sequence[Interval]]:
    """Return when the thread of the steps was in collectives, made a batch itself, or waited for one."""
    fetches = [fetch for fetch in trace.fetches if fetch.thread == trace.steps[0].thread]
    loading = unite_intervals(
        [*((fetch.start, fetch.end) for fetch in fetches), *phases.loading_intervals()], trace.window
    )
    made = unite_intervals(
        ((fetch.start, fetch.end) for fetch in fetches if OWN_FETCH in fetch.name), trace.window
    )
    own = [interval for interval in loading if intersect_interval(interval, made)]
    return {
        idle_gaps.COLLECTIVES: unite_intervals(
            phases.collective_intervals() if is_rank else (), trace.window
        ),
        idle_gaps.DATASET: own,
        idle_gaps.DATA: subtract_intervals(loading, own),
    }


def _explain_host_gaps(
    busy: Sequence[Interval],
    intervals: Mapping[str, Sequence[Interval]],
    phases: PhaseClock,
    window: Interval,
    busy_share: float | None,
) -> Idle:
    """Return the time between operations: in collectives, in the loading of data, else in the code's Python.

    That Python ran is believed as far as the thread was awake; what it slept or waited beyond that is
    unexplained.
    """
    idle: defaultdict[tuple[str, str], IdleTime] = defaultdict(IdleTime)
    for gap in subtract_intervals([window], busy):
        rest = [gap]
        for cause, taken in intervals.items():
            parts = [part for piece in rest for part in intersect_interval(piece, taken)]
            rest = subtract_intervals(rest, parts)
            _add_parts(idle, cause, parts, phases)
        _add_parts(idle, idle_gaps.HOST, rest, phases)
    if busy_share is not None:
        _move_waiting(idle, window, busy_share)
    return dict(idle)


def _add_parts(
    idle: defaultdict[tuple[str, str], IdleTime], cause: str, parts: Iterable[Interval], phases: PhaseClock
) -> None:
    for part in parts:
        for phase, seconds in phases.split_by_phase(part):
            idle[cause, phase].seconds += seconds
            idle[cause, phase].count += 1


def _move_waiting(idle: defaultdict[tuple[str, str], IdleTime], window: Interval, share: float) -> None:
    """Call unexplained what the thread waited, apart from the waiting for data and for other ranks."""
    length = window[1] - window[0]
    known = sum(row.seconds for (cause, _), row in idle.items() if cause in _WAITING)
    python = sum(row.seconds for (cause, _), row in idle.items() if cause in _RUNNING)
    waited = min(max(length * (1 - share) - known, 0.0), python)
    if waited <= 0:
        return
    for (cause, _), row in idle.items():
        if cause in _RUNNING:
            row.seconds *= 1 - waited / python
    idle[idle_gaps.UNEXPLAINED, ""] = IdleTime(waited, 1)


def _idle_rows(idle: Idle, steps: int) -> list[Raw]:
    rows: list[Raw] = [
        {"cause": cause, "phase": phase, "count": row.count / steps, "seconds": row.seconds / steps}
        for (cause, phase), row in idle.items()
        if row.seconds > 0
    ]
    rows.sort(key=lambda row: (-row["seconds"], row["cause"], row["phase"]))
    kept, others = rows[:IDLE_LIMIT], rows[IDLE_LIMIT:]
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in others:
        sums[row["cause"]][0] += row["count"]
        sums[row["cause"]][1] += row["seconds"]
    return kept + [
        {"cause": cause, "phase": "(others)", "count": count, "seconds": seconds}
        for cause, (count, seconds) in sums.items()
    ]


def _phase_rows(rows: Iterable[Mapping[str, Any]], launches: Counter[str], steps: int) -> list[Raw]:
    """Return what was launched in each phase, and the seconds of it."""
    counts: Counter[str] = Counter()
    seconds: defaultdict[str, float] = defaultdict(float)
    for row in rows:
        counts[row["phase"]] += row["count"] if row["kind"] in (KERNEL, "operation") else 0
        seconds[row["phase"]] += row["seconds"]
    found: list[Raw] = [
        {
            "phase": phase,
            "count": counts[phase] / steps,
            "launches": launches[phase] / steps,
            "seconds": seconds[phase] / steps,
        }
        for phase in {*seconds, *launches}
    ]
    return sorted(found, key=lambda row: (-row["seconds"], row["phase"]))[:PHASE_LIMIT]
