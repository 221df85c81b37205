"""Host or device: which of the two took the time that a phase lost, as a code.

A phase's device time is what the stream took from its begin to its end, idle spells included. So where host
and device grew alike in a phase, either one may have waited for the other; how busy the device was tells them
apart. And a host that reads a result waits in one phase for what the device does for another.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from dashboard.models import Document, Regression
from dashboard.phases import sweeps
from dashboard.phases.paths import is_in_phase
from dashboard.regressions.decision.facts import Series
from dashboard.regressions.explanation import phase_shares
from dashboard.regressions.explanation.phase_shares import CLOCKED, Sides

# A device that grew by this part of what the host lost, or by more, is a reason for it.
REASON_SHARE = 0.5

Place = Regression.Place
NOWHERE = (Place.UNDETERMINED, "")


def place_of_loss(series: Series, phase: str, sides: Sides, lost: float) -> tuple[str, str]:
    """Where a phase lost `lost` seconds of the host's time, and the phase whose device work it waits for.

    Sweeps record no device time: of what is read off them it can be said only where there is no device.
    """
    if not phase or series.metric.kind not in CLOCKED or not sides.good or not sides.bad:
        return NOWHERE
    used = used_by_sides(sides)
    if used == {"cpu"}:
        return Place.HOST_ALONE, ""
    if used != {"cuda"} or sweeps.is_read_off_sweep(series, sides.bad):
        return NOWHERE
    devices = phase_shares.phase_deltas(series, "phase_device_time", sides)
    return place_by_growth(phase, lost, devices, device_work_growth(series, sides))


def place_by_growth(
    phase: str, lost: float, devices: Mapping[str, float], worked: float | None
) -> tuple[str, str]:
    """`devices`: growth of device time by phase, those nested in it included. `worked`: by how much longer
    the device worked; None where that isn't known. All in seconds per step.
    """
    if lost <= 0 or phase not in devices:
        return NOWHERE
    if devices[phase] >= REASON_SHARE * lost:
        place = (
            Place.UNKNOWN if worked is None else Place.DEVICE if worked >= REASON_SHARE * lost else Place.HOST
        )
        return place, ""
    beside = [
        other for other in sorted(devices) if not (is_in_phase(other, phase) or is_in_phase(phase, other))
    ]
    busiest = max(beside, key=lambda other: devices[other], default="")
    if busiest and devices[busiest] >= REASON_SHARE * lost:
        return Place.WAITS_FOR_DEVICE, busiest
    return Place.HOST, ""


def used_by_sides(sides: Sides) -> set[str | None]:
    """What the two runs next to the step computed on: `cpu`, `cuda`."""
    rows = Document.objects.filter(run__in=[sides.good[-1], sides.bad[0]])
    return set(rows.values_list("body__environment__path", flat=True))


def device_work_growth(series: Series, sides: Sides) -> float | None:
    """By how much longer the device worked in a step: its utilization times the step's time, in seconds."""
    shares, times = (
        phase_shares.values_by_phase(series, name, sides).get("", {})
        for name in ("gpu_utilization", "step_time")
    )
    worked = {run: shares[run] / 100 * times[run] for run in shares.keys() & times.keys()}
    levels = [[worked[run] for run in runs if run in worked] for runs in (sides.good, sides.bad)]
    return float(median(levels[1]) - median(levels[0])) if all(levels) else None
