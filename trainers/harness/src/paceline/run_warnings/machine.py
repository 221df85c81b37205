"""Warnings about the machine: its memory, and what of it couldn't be read."""

from __future__ import annotations

from ..watching import process_usage
from .warning import Raw, WarningRows, make_warning

MEMORY_PRESSURE = 0.9


def machine_warnings(raw: Raw) -> WarningRows:
    """Yield what was wrong with the machine while it measured."""
    yield from _memory_pressure(raw)
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


def _psutil_missing() -> WarningRows:
    if not (process_usage.HAS_PROC or process_usage.HAS_PSUTIL):
        yield make_warning(
            "psutil_missing",
            "this system has no /proc and the harness's environment no psutil: processes aren't read",
            "install psutil there",
        )
