"""Warnings about the machine: its memory, its devices, and what of it couldn't be read."""

from __future__ import annotations

from collections.abc import Sequence

from ..measurement import TimedRepetition
from ..watching import nvml, process_usage
from .warning import Raw, WarningRows, make_warning

MEMORY_PRESSURE = 0.9
CLOCK_CHANGE = 0.15


def machine_warnings(raw: Raw, timed: Sequence[TimedRepetition]) -> WarningRows:
    """Yield what was wrong with the machine while it measured."""
    yield from _memory_pressure(raw)
    if raw["environment"]["path"] == "cuda":
        yield from _device_warnings(raw, timed)
    yield from _psutil_missing()


def _memory_pressure(raw: Raw) -> WarningRows:
    peaks = [row["peak_memory"] for row in raw["repetitions"] if row["peak_memory"] is not None]
    available = raw["environment"]["memory_bytes"]
    if peaks and available and max(peaks) > MEMORY_PRESSURE * available:
        yield make_warning(
            "memory_pressure",
            f"the benchmark needed {max(peaks) / available:.0%} of the machine's memory",
            "measure it on a machine with more memory",
            taints=True,
        )
    held = [row["device_memory"]["reserved"] for row in raw["repetitions"] if row["device_memory"]]
    sizes = [gpu["memory_bytes"] for gpu in raw["environment"]["gpus"] if gpu["memory_bytes"]]
    if held and sizes and max(held) > MEMORY_PRESSURE * max(sizes):
        yield make_warning(
            "memory_pressure",
            f"PyTorch held {max(held) / max(sizes):.0%} of the device's memory",
            "measure it on a device with more memory, or with smaller batches",
            taints=True,
        )


def _device_warnings(raw: Raw, timed: Sequence[TimedRepetition]) -> WarningRows:
    reasons = sorted({reason for repetition in timed for _, reason in repetition.sampler.throttling})
    if reasons:
        yield make_warning(
            "throttling",
            f"a device held its clock down: {', '.join(reasons)}",
            "check its cooling and power limit",
            # At full load many devices are at their power limit all the time. Were they only now and then,
            # the clock would change.
            taints=reasons != [nvml.POWER_CAP],
        )
    lost = sorted({index for repetition in timed for index in repetition.sampler.lost})
    if lost:
        yield make_warning(
            "device_lost",
            f"the driver lost device {', '.join(map(str, lost))}, its readings end there",
            "look for its error in the system's log, and restart the machine",
            taints=True,
        )
    co_tenants = [repetition.sampler.co_tenants for repetition in timed]
    foreign = sorted({pid for tenants in co_tenants for _, pid in tenants.foreign_processes})
    if foreign:
        yield make_warning(
            "co_tenant",
            f"{len(foreign)} other process{'es' if len(foreign) > 1 else ''} computed on the device",
            "measure on a device of its own",
            taints=True,
        )
    for clocks in _clocks_by_device(raw):
        if max(clocks) > min(clocks) * (1 + CLOCK_CHANGE):
            yield make_warning(
                "clock_change",
                f"the device's clock was between {min(clocks):.0f} and {max(clocks):.0f} MHz",
                "lock the device's clocks while measuring",
                taints=True,
            )


def _clocks_by_device(raw: Raw) -> list[list[float]]:
    """Return each device's mean clock in the windows of the repetitions."""
    clocks: dict[int, list[float]] = {}
    for row in raw["telemetry"]:
        if row["channel"] == "gpu_sm_clock" and row["mean"]:
            clocks.setdefault(row["device"], []).append(row["mean"])
    return list(clocks.values())


def _psutil_missing() -> WarningRows:
    if not (process_usage.HAS_PROC or process_usage.HAS_PSUTIL):
        yield make_warning(
            "psutil_missing",
            "this system has no /proc and the harness's environment no psutil: processes aren't read",
            "install psutil there",
        )
