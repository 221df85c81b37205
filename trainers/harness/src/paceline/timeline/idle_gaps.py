"""Why a device computed nothing: each gap between its kernels, by what the host did at that time.

The causes, the first that fits: `collectives`, only kernels of NCCL ran, which send and wait for other ranks;
`data`, the host fetched a batch; `copy`, the device or the host was copying;
`synchronisation`, the gap began while the host waited for the device, so that nothing more was queued;
`host`, the kernel behind the gap was only launched when the gap had begun; `launch`, it was queued before,
and the gap is no longer than what a device needs between two kernels. What fits none is `unexplained`.
Without a device `collectives` is when the host was in one, and one more is reported: `dataset`, this process
made a batch itself, in Python.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .host_phases import PhaseClock
from .intervals import Interval, intersect_interval, subtract_intervals, total_length, unite_intervals
from .trace_events import COPY, DeviceActivity, HostCall, Trace

DATA, COPYING, SYNCHRONISATION, HOST, LAUNCH, UNEXPLAINED, DATASET, COLLECTIVES = (
    "data",
    "copy",
    "synchronisation",
    "host",
    "launch",
    "unexplained",
    "dataset",
    "collectives",
)
# Between two kernels that are both queued a device needs a microsecond or two.
LONGEST_LAUNCH = 5e-6


@dataclass(slots=True)
class IdleTime:
    """How long and how often a device was idle for one cause, while the host was in one phase."""

    seconds: float = 0.0
    count: int = 0


Idle = dict[tuple[str, str], IdleTime]


@dataclass(frozen=True, slots=True)
class _Evidence:
    """By time: what the device sent, and when the host fetched data, copied, and waited for the device."""

    collectives: Sequence[Interval]
    data: Sequence[Interval]
    copying: Sequence[Interval]
    waits: Sequence[HostCall]
    wait_starts: Sequence[float]
    launches: Mapping[int, HostCall]


def explain_idle_time(trace: Trace, activities: Sequence[DeviceActivity], phases: PhaseClock) -> Idle:
    """Return the idle time of one device by cause and phase; `activities` are those of that device."""
    window = trace.window
    computing = [activity for activity in activities if is_computing(activity)]
    busy = unite_intervals(((activity.start, activity.end) for activity in computing), window)
    evidence = _collect_evidence(trace, activities, phases)
    starts = [activity.start for activity in computing]
    idle: defaultdict[tuple[str, str], IdleTime] = defaultdict(IdleTime)
    for gap in subtract_intervals([window], busy):
        place = bisect_right(starts, gap[1] - 1e-12)
        following = computing[place] if place < len(computing) and gap[1] < window[1] else None
        counted: set[tuple[str, str]] = set()
        for cause, part in _explain_gap(gap, following, evidence):
            for phase, seconds in phases.split_by_phase(part):
                row = idle[cause, phase]
                row.seconds += seconds
                row.count += (cause, phase) not in counted
                counted.add((cause, phase))
    return dict(idle)


def is_computing(activity: DeviceActivity) -> bool:
    """Whether a device computes in it: it copies or sends beside that."""
    return activity.kind != COPY and not activity.is_collective


def _collect_evidence(trace: Trace, activities: Sequence[DeviceActivity], phases: PhaseClock) -> _Evidence:
    window, main = trace.window, trace.steps[0].thread
    fetches = [(fetch.start, fetch.end) for fetch in trace.fetches if fetch.thread == main]
    collectives = [(activity.start, activity.end) for activity in activities if activity.is_collective]
    device_copies = [(activity.start, activity.end) for activity in activities if activity.kind == COPY]
    host_copies = [(call.start, call.end) for call in trace.calls if call.name.startswith(_COPY_CALLS)]
    waits = [call for call in trace.calls if is_waiting_call(call.name)]
    return _Evidence(
        collectives=unite_intervals(collectives, window),
        data=unite_intervals([*fetches, *phases.loading_intervals()], window),
        copying=unite_intervals([*device_copies, *host_copies], window),
        waits=waits,
        wait_starts=[call.start for call in waits],
        launches={call.correlation: call for call in trace.calls if call.correlation >= 0},
    )


_COPY_CALLS = ("cudaMemcpy", "cuMemcpy", "hipMemcpy")


def is_waiting_call(name: str) -> bool:
    """Whether the host waits in such a call until the device has done what was asked of it so far."""
    return name.endswith("Synchronize") or name in ("cudaMemcpy", "cudaMemcpy2D", "hipMemcpyWithStream")


def _explain_gap(
    gap: Interval, following: DeviceActivity | None, evidence: _Evidence
) -> Iterator[tuple[str, Interval]]:
    """Yield the parts of a gap with their causes; `following` is what the device computed next."""
    rest = [gap]
    for cause, intervals in ((COLLECTIVES, evidence.collectives), (DATA, evidence.data)):
        parts = [part for piece in rest for part in intersect_interval(piece, intervals)]
        yield from ((cause, part) for part in parts)
        rest = subtract_intervals(rest, parts)
    for piece in rest:
        copying = intersect_interval(piece, evidence.copying)
        yield from ((COPYING, part) for part in copying)
        left = subtract_intervals([piece], copying)
        if left:
            cause = _cause_of_rest(gap, total_length(left), following, evidence)
            yield from ((cause, part) for part in left)


def _cause_of_rest(
    gap: Interval, seconds: float, following: DeviceActivity | None, evidence: _Evidence
) -> str:
    if _was_waiting(_queue_end(gap, evidence), evidence):
        return SYNCHRONISATION
    if following is None:
        # No kernel followed in the window: nothing was queued any more.
        return HOST
    launch = evidence.launches.get(following.correlation)
    if launch is None:
        return UNEXPLAINED
    if launch.end > gap[0]:
        return HOST
    return LAUNCH if seconds <= LONGEST_LAUNCH else UNEXPLAINED


def _queue_end(gap: Interval, evidence: _Evidence) -> float:
    """Return when the device's queue ran dry: after what follows the last kernel and computes nothing."""
    sent = intersect_interval(gap, evidence.collectives)
    transfers = unite_intervals([*intersect_interval(gap, evidence.copying), *sent], gap)
    moment = gap[0]
    for start, end in transfers:
        if start - moment > LONGEST_LAUNCH:
            break
        moment = end
    return moment


def _was_waiting(moment: float, evidence: _Evidence) -> bool:
    # A read of a value first copies, which waits already, and then asks to wait.
    place = bisect_right(evidence.wait_starts, moment + LONGEST_LAUNCH)
    # Waits of several threads may overlap: the last few are looked at.
    return any(call.end >= moment for call in evidence.waits[max(0, place - 4) : place])
