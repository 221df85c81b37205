"""What a device did otherwise between two profiled runs: kernels that are new or slower, idle time by cause.

Two timelines of the same device add up to their steps, and so do their differences: what neither a kernel nor
a cause explains is in the row `unexplained`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.models import Document
from dashboard.profile_tallies import NOTHING, ON_DEVICE, KernelKey, Tally, Timeline, tally_kernels
from dashboard.regressions.explanation.phase_shares import Sides
from dashboard.regressions.explanation.profiles import NEAREST

MOST_KERNELS = 10
# A kernel that takes this part of the profiled step more, or is new, is worth a line.
LEAST_STEP_SHARE = 0.01


def explain_on_device(sides: Sides) -> dict[str, Any]:
    """How the device's time differs between the two levels; empty without a timeline on both sides."""
    before, after = timelines_of_sides(sides)
    return subtract_timelines(before, after) if before and after else {}


def timelines_of_sides(sides: Sides) -> tuple[Timeline | None, Timeline | None]:
    """The timeline of the nearest run of each level that has one of a device."""
    near = list(sides.good[::-1][:NEAREST]), list(sides.bad[:NEAREST])
    rows = Document.objects.filter(run__in=[*near[0], *near[1]], body__device_profile__device=ON_DEVICE)
    found: dict[int, Timeline] = dict(rows.values_list("run_id", "body__device_profile"))
    first, second = (next((found[run] for run in runs if run in found), None) for runs in near)
    return first, second


def subtract_timelines(before: Timeline, after: Timeline) -> dict[str, Any]:
    """Kernels that grew, the largest growth first, and every idle cause; before and after, per step."""
    old, new = tally_kernels(before), tally_kernels(after)
    most = LEAST_STEP_SHARE * after["step_seconds"]
    grown = [
        kernel_row(key, old.get(key, NOTHING), now)
        for key, now in new.items()
        if now[1] - old.get(key, NOTHING)[1] >= most or (now[0] and not old.get(key, NOTHING)[0])
    ]
    grown.sort(key=lambda row: (row["seconds_before"] - row["seconds_after"], row["kernel"], row["phase"]))
    return {
        "step": [before["step_seconds"], after["step_seconds"]],
        "busy": [before["busy_seconds"], after["busy_seconds"]],
        "kernels": grown[:MOST_KERNELS],
        "idle": idle_rows(before, after),
    }


def kernel_row(key: KernelKey, before: Tally, after: Tally) -> dict[str, Any]:
    kernel, operation, phase = key
    return {
        "kernel": kernel,
        "operation": operation,
        "phase": phase,
        "count_before": before[0],
        "count_after": after[0],
        "seconds_before": before[1],
        "seconds_after": after[1],
    }


def idle_rows(before: Timeline, after: Timeline) -> list[dict[str, Any]]:
    """Each cause with the phase in which it grew most, the largest growth first; `spread`: it has others."""
    old, new = idle_by_cause(before["idle"]), idle_by_cause(after["idle"])
    rows = [
        {
            "cause": cause,
            "phase": phase_of_growth(old.get(cause, {}), new.get(cause, {})),
            "spread": len({*old.get(cause, {}), *new.get(cause, {})}) > 1,
            "seconds_before": sum(old.get(cause, {}).values()),
            "seconds_after": sum(new.get(cause, {}).values()),
        }
        for cause in dict.fromkeys((*new, *old))
    ]
    return sorted(rows, key=lambda row: (row["seconds_before"] - row["seconds_after"], row["cause"]))


def idle_by_cause(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    found: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in rows:
        found[row["cause"]][row["phase"]] += row["seconds"]
    return {cause: dict(phases) for cause, phases in found.items()}


def phase_of_growth(old: Mapping[str, float], new: Mapping[str, float]) -> str:
    growth = {phase: new.get(phase, 0.0) - old.get(phase, 0.0) for phase in sorted({*old, *new})}
    return max(growth, key=lambda phase: growth[phase], default="")
