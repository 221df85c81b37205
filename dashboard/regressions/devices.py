"""Host or device: which of the two took the time that a phase lost.

A phase's device time is what the stream took from its begin to its end, idle spells included. So where host
and device grew alike in a phase, either one may have waited for the other; how busy the device was tells them
apart. And a host that reads a result waits in one phase for what the device does for another.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from dashboard.models import Document, Regression, Series
from dashboard.regressions import attribution, growth
from dashboard.regressions.attribution import CLOCKED, Sides
from dashboard.regressions.phases import holds

# The part of the host's growth that counts as all of it, or as nothing.
HALF = 0.5

HOST = "on the host"
DEVICE = "on the device"
UNKNOWN = "on the host or the device: their times grew alike"


def place_of(series: Series, phase: str, sides: Sides, lost: float) -> str:
    """`on the host`: where the phase lost `lost` seconds of the host's time; empty where that can't be said.

    Sweeps record no device time: of what is read off them it can be said only where there is no device.
    """
    if not phase or series.metric.kind not in CLOCKED or not sides.good or not sides.bad:
        return ""
    used = used_by(sides)
    if used == {"cpu"}:
        return Regression.HOST_ALONE
    if "cuda" not in used or growth.is_read(series):
        return ""
    devices = attribution.phase_deltas(series, "phase_device_time", sides)
    return told(phase, lost, devices, busy(series, sides))


def told(phase: str, lost: float, devices: Mapping[str, float], busy: float | None) -> str:
    """`devices`: growth of device time by phase, those nested in it included. `busy`: of the device's work.

    All in seconds per step.
    """
    if lost <= 0 or phase not in devices:
        return ""
    if devices[phase] >= HALF * lost:
        return UNKNOWN if busy is None else DEVICE if busy >= HALF * lost else HOST
    beside = [one for one in sorted(devices) if not (holds(phase, one) or holds(one, phase))]
    busiest = max(beside, key=lambda one: devices[one], default="")
    if busiest and devices[busiest] >= HALF * lost:
        return f"{DEVICE}: the host waits there for what it does in {busiest}"
    return HOST


def used_by(sides: Sides) -> set[str | None]:
    """What the runs' documents say was computed on: `cpu`, `cuda`."""
    rows = Document.objects.filter(run__in=[*sides.good, *sides.bad])
    return set(rows.values_list("body__environment__path", flat=True))


def busy(series: Series, sides: Sides) -> float | None:
    """By how much longer the device worked in a step: its utilization times the step's time, in seconds."""
    shares, times = (
        attribution.values_of(series, name, sides).get("", {}) for name in ("gpu_utilization", "step_time")
    )
    worked = {run: shares[run] / 100 * times[run] for run in shares.keys() & times.keys()}
    levels = [[worked[run] for run in runs if run in worked] for runs in (sides.good, sides.bad)]
    return float(median(levels[1]) - median(levels[0])) if all(levels) else None
