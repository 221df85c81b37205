"""Host or device: which of the two took the time that a phase lost.

A phase's device time is what the stream took from its begin to its end, idle spells included. So where host
and device grew alike in a phase, either one may have waited for the other; how busy the device was tells them
apart. And a host that reads a result waits in one phase for what the device does for another.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from dashboard.models import Document, Regression, Series
from dashboard.regressions import attribution, sweeps
from dashboard.regressions.attribution import CLOCKED, Sides
from dashboard.regressions.phases import holds

# A device that grew by this part of what the host lost, or by more, is a reason for it.
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
    if used != {"cuda"} or sweeps.is_read(series, sides.bad):
        return ""
    devices = attribution.phase_deltas(series, "phase_device_time", sides)
    return told(phase, lost, devices, worked_longer(series, sides))


def told(phase: str, lost: float, devices: Mapping[str, float], worked: float | None) -> str:
    """`devices`: growth of device time by phase, those nested in it included. `worked`: by how much longer
    the device worked; None where that isn't known. All in seconds per step.
    """
    if lost <= 0 or phase not in devices:
        return ""
    if devices[phase] >= HALF * lost:
        return UNKNOWN if worked is None else DEVICE if worked >= HALF * lost else HOST
    beside = [one for one in sorted(devices) if not (holds(phase, one) or holds(one, phase))]
    busiest = max(beside, key=lambda one: devices[one], default="")
    if busiest and devices[busiest] >= HALF * lost:
        return f"{DEVICE}: the host waits in this phase for the device's work of {busiest}"
    return HOST


def used_by(sides: Sides) -> set[str | None]:
    """What the two runs next to the step computed on: `cpu`, `cuda`."""
    rows = Document.objects.filter(run__in=[sides.good[-1], sides.bad[0]])
    return set(rows.values_list("body__environment__path", flat=True))


def worked_longer(series: Series, sides: Sides) -> float | None:
    """By how much longer the device worked in a step: its utilization times the step's time, in seconds."""
    shares, times = (
        attribution.values_of(series, name, sides).get("", {}) for name in ("gpu_utilization", "step_time")
    )
    worked = {run: shares[run] / 100 * times[run] for run in shares.keys() & times.keys()}
    levels = [[worked[run] for run in runs if run in worked] for runs in (sides.good, sides.bad)]
    return float(median(levels[1]) - median(levels[0])) if all(levels) else None
