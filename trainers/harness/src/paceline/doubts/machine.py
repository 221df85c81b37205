"""Doubts about the machine: its memory, its devices, and what of it could be seen."""

from __future__ import annotations

from collections.abc import Sequence

from ..measurement import Timed
from ..watching import nvml, usage
from .warning import Found, Raw, warning

MEMORY_PRESSURE = 0.9
CLOCK_CHANGE = 0.15


def doubts(raw: Raw, timed: Sequence[Timed]) -> Found:
    """Yield what was wrong with the machine while it measured."""
    yield from _pressure(raw)
    if raw["environment"]["path"] == "cuda":
        yield from _devices(raw, timed)
    yield from _without_psutil()


def _pressure(raw: Raw) -> Found:
    peaks = [row["peak_memory"] for row in raw["repetitions"] if row["peak_memory"] is not None]
    available = raw["environment"]["memory_bytes"]
    if peaks and available and max(peaks) > MEMORY_PRESSURE * available:
        yield warning(
            "memory_pressure",
            f"the benchmark needed {max(peaks) / available:.0%} of the machine's memory",
            "measure it on a machine with more memory",
            taints=True,
        )
    held = [row["device_memory"]["reserved"] for row in raw["repetitions"] if row["device_memory"]]
    sizes = [gpu["memory_bytes"] for gpu in raw["environment"]["gpus"] if gpu["memory_bytes"]]
    if held and sizes and max(held) > MEMORY_PRESSURE * max(sizes):
        yield warning(
            "memory_pressure",
            f"PyTorch held {max(held) / max(sizes):.0%} of the device's memory",
            "measure it on a device with more memory, or with smaller batches",
            taints=True,
        )


def _devices(raw: Raw, timed: Sequence[Timed]) -> Found:
    reasons = sorted({reason for one in timed for _, reason in one.sampler.throttling})
    if reasons:
        yield warning(
            "throttling",
            f"a device held its clock down: {', '.join(reasons)}",
            "check its cooling and power limit",
            # At full load many devices are at their power limit all the time. Were they only now and then,
            # the clock would change.
            taints=reasons != [nvml.POWER_CAP],
        )
    lost = sorted({index for one in timed for index in one.sampler.lost})
    if lost:
        yield warning(
            "device_lost",
            f"the driver lost device {', '.join(map(str, lost))}, its readings end there",
            "look for its error in the system's log, and restart the machine",
            taints=True,
        )
    strangers = sorted({pid for one in timed for _, pid in one.sampler.tenancy.strangers})
    if strangers:
        yield warning(
            "co_tenant",
            f"{len(strangers)} other process{'es' if len(strangers) > 1 else ''} computed on the device",
            "measure on a device of its own",
            taints=True,
        )
    for clocks in _clocks(raw):
        if max(clocks) > min(clocks) * (1 + CLOCK_CHANGE):
            yield warning(
                "clock_change",
                f"the device's clock was between {min(clocks):.0f} and {max(clocks):.0f} MHz",
                "lock the device's clocks while measuring",
                taints=True,
            )


def _clocks(raw: Raw) -> list[list[float]]:
    """Return each device's mean clock in the windows of the repetitions."""
    found: dict[int, list[float]] = {}
    for row in raw["telemetry"]:
        if row["channel"] == "gpu_sm_clock" and row["mean"]:
            found.setdefault(row["device"], []).append(row["mean"])
    return list(found.values())


def _without_psutil() -> Found:
    if not (usage.HAS_PROC or usage.HAS_PSUTIL):
        yield warning(
            "psutil_missing",
            "this system has no /proc and the harness's environment no psutil: processes aren't read",
            "install psutil there",
        )
