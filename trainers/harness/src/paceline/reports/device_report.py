"""The sections of a report about devices: where a profiled step's time went, and how devices were used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ..document import Document
from ..document_rows import DeviceProfile, TimelineRow
from ..timeline.timeline_differences import TimelineDifference, subtract_idle_time, subtract_timelines
from ..units import align_columns, format_amount, format_count

MOST_ROWS = 12
MOST_DIFFERING = 10
CAUSES = {
    "collectives": "idle: in collectives, other ranks or transfer",
    "data": "idle: waiting for data",
    "copy": "idle: copying",
    "synchronisation": "idle: after a synchronisation",
    "host": "idle: the host launched nothing",
    "launch": "idle: between queued kernels",
    "unexplained": "unexplained",
}
HOST_CAUSES = {
    "data": "waiting for data",
    "dataset": "Python of the dataset",
    "collectives": "in collectives: other ranks, transfer",
    "host": "Python between operations",
    "unexplained": "unexplained: asleep or waiting",
}
FLOPS_REASONS = {
    "none": "none were counted",
    "not_counted": "they weren't counted",
    "compiled": "compiled code isn't counted",
    "unknown_device": "the device isn't in the table",
    "unknown_type": "the device's peak for a type isn't in the table",
    "impossible": "the count can't be right",
}
COUNTER_REASONS = {
    "no_nvml": "there is no NVML, which the package nvidia-ml-py reads",
    "not_supported": "the device has no such counters, which Hopper brought",
    "short_window": "the window is shorter than half a second",
    "divided": "of a part of a divided device they aren't read",
    "failed": "the driver refused",
}


def timeline_table(document: Document) -> str:
    """Return where a profiled step's time went: what ran, heaviest first, and what lay in between."""
    profile = document.device_profile
    if profile is None:
        return ""
    what = "kernel" if profile.device == "cuda" else "operation (profiled)"
    # What a copy or a collective takes beside kernels is nobody's loss: the rest is among the idle time.
    computing = [row for row in profile.rows if row.kind != "copy" and not _is_collective(row)]
    rows = [
        [_shorten_text(row.name), row.phase, f"{row.count:.4g}", *_time_cells(row.seconds, profile)]
        for row in computing[:MOST_ROWS]
    ]
    others = computing[MOST_ROWS:]
    seconds = sum(row.seconds for row in others) + profile.rest["seconds"]
    if seconds:
        number = len(others) + int(profile.rest["rows"])
        count = sum(row.count for row in others) + profile.rest["count"]
        rows.append([f"{number} others", "", f"{count:.4g}", *_time_cells(seconds, profile)])
    rows += [
        [cause, phase, "", *_time_cells(seconds, profile)] for cause, phase, seconds in _idle_lines(profile)
    ]
    table = align_columns([[what, "phase", "per step", "time", "of step"], *rows])
    return f"{table}\n{_timeline_line(profile)}"


def _idle_lines(profile: DeviceProfile) -> list[tuple[str, str, float]]:
    """Return each cause, `mostly learn`, the phase that most of it fell into, and the time of all phases."""
    words = CAUSES if profile.device == "cuda" else HOST_CAUSES
    sums: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in profile.idle:
        sums[row.cause][row.phase] += row.seconds
    lines = [
        (words.get(cause, cause), _name_largest(phases), sum(phases.values()))
        for cause, phases in sums.items()
    ]
    return sorted(lines, key=lambda line: -line[2])


def _name_largest(phases: Mapping[str, float]) -> str:
    largest = max(phases, key=lambda phase: phases[phase])
    return f"mostly {largest}" if largest and len(phases) > 1 else largest


def _time_cells(seconds: float, profile: DeviceProfile) -> list[str]:
    return [format_amount(seconds, "s"), f"{seconds / profile.step_seconds:.1%}"]


def _timeline_line(profile: DeviceProfile) -> str:
    launches = "" if profile.launches is None else f", {profile.launches:.4g} launches a step"
    copies = sum(row.seconds for row in profile.rows if row.kind == "copy")
    launches += f", copies of {format_amount(copies, 's')}" if copies else ""
    launches += _describe_collectives(profile)
    return (
        f"{format_count(profile.steps, 'profiled step')} of {format_amount(profile.step_seconds, 's')}, "
        f"{profile.explained:.0%} of it explained{launches}"
    )


def _describe_collectives(profile: DeviceProfile) -> str:
    """Return `, collectives of 3.2 ms, 40 % of it beside kernels`; empty where the device ran none."""
    seconds = sum(row.seconds for row in profile.rows if _is_collective(row))
    if not seconds:
        return ""
    alone = sum(row.seconds for row in profile.idle if row.cause == "collectives")
    hidden = max(0.0, 1 - alone / seconds)
    return f", collectives of {format_amount(seconds, 's')}, {hidden:.0%} of it beside kernels"


def _is_collective(row: TimelineRow) -> bool:
    """Whether it is a kernel of NCCL."""
    return row.kind == "kernel" and row.name.startswith("nccl")


def timeline_tables(before: Document, after: Document) -> list[str]:
    """Return what differs between two device profiles: new kernels in a sentence, all of them, idle time."""
    old, new = before.device_profile, after.device_profile
    if old is None or new is None:
        return []
    kernels, idle = subtract_timelines(old, new), subtract_idle_time(old, new)
    on_device = new.device == "cuda"
    what = "kernel" if on_device else "operation (profiled)"
    words = CAUSES if on_device else HOST_CAUSES
    tables = [describe_new_kernels(kernels)] if on_device else []
    if kernels:
        rows = [
            [_name_of_difference(row), row.phase, f"{row.more:+.4g}", format_signed(row.growth)]
            for row in kernels[:MOST_DIFFERING]
        ]
        tables.append(align_columns([[what, "phase", "per step", "time"], *rows]))
    if idle:
        rows = [
            [words.get(row.name, row.name), row.phase, format_signed(row.growth)]
            for row in idle[:MOST_DIFFERING]
        ]
        tables.append(align_columns([["not computing", "phase", "time"], *rows]))
    return [table for table in tables if table]


def describe_new_kernels(differences: Sequence[TimelineDifference]) -> str:
    """Return `2 new kernels, 1.2 ms: index_put in learn/push`; empty where none is new."""
    new = [row for row in differences if row.is_new]
    if not new:
        return ""
    seconds = sum(row.after[1] for row in new)
    first = max(new, key=lambda row: row.after[1])
    place = f" in {first.phase}" if first.phase else ""
    name = first.operation.partition("::")[2].rstrip("_") or first.name
    return f"{format_count(len(new), 'new kernel')}, {format_amount(seconds, 's')}: {name}{place}"


def _name_of_difference(row: TimelineDifference) -> str:
    operation = f" ({row.operation})" if row.operation else ""
    return _shorten_text(f"{row.name}{operation}")


def format_signed(seconds: float) -> str:
    """Return `+1.2 ms`, `-30 us`."""
    return f"{'-' if seconds < 0 else '+'}{format_amount(abs(seconds), 's')}"


def describe_device_use(document: Document) -> str:
    """Return what isn't known of the devices' use, and why: what is known stands among the metrics."""
    use = document.device_use
    if use is None:
        return ""
    lines = []
    flops, counters = use["flops"], use["counters"]
    if flops["status"] != "known":
        lines.append(f"model FLOPs utilization: unknown, {FLOPS_REASONS[flops['status']]}")
    if flops["uncounted"]:
        lines.append(f"operations whose FLOPs aren't known: {', '.join(flops['uncounted'])}")
    for name in ("tensor_cores", "memory_bandwidth"):
        value = counters[name]
        why = COUNTER_REASONS.get(counters["status"], "not read")
        words = name.replace("_", " ")
        lines.append(f"{words}: {value:.3g} %" if value is not None else f"{words}: not known, {why}")
    if use["energy"]["step"] is None:
        lines.append("energy: not known, the device's counter couldn't be read over the window")
    return "\n".join(lines)


def _shorten_text(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
