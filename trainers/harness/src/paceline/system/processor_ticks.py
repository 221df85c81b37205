"""The clock ticks of processors since the boot, as /proc/stat has them."""

from __future__ import annotations

from dataclasses import dataclass

from .processes import read_proc_file

# Of a processor's times: idle, waiting for a disk, stolen by the host of a virtual machine; and guests, which
# user time has already.
IDLE, DISK_WAIT, STOLEN, GUEST = 3, 4, 7, 8
# The row of all processors.
ALL = "cpu"


@dataclass(frozen=True, slots=True)
class ProcessorTicks:
    """One processor's clock ticks so far: with somebody's work or stolen, in all, and the stolen ones."""

    busy: int
    passed: int
    stolen: int = 0


def read_processor_ticks(proc: str = "/proc") -> dict[str, ProcessorTicks]:
    """Return each processor's ticks by its name; empty where the kernel doesn't say."""
    rows = _read_rows(proc)
    rows.pop(ALL, None)
    return rows


def read_machine_ticks(proc: str = "/proc") -> ProcessorTicks | None:
    """Return the ticks of all processors together; None where the kernel doesn't say."""
    return _read_rows(proc).get(ALL)


def _read_rows(proc: str) -> dict[str, ProcessorTicks]:
    lines = read_proc_file(f"{proc}/stat").decode().splitlines()
    rows = [line.split() for line in lines if line.startswith(ALL)]
    try:
        return {name: _count_ticks([int(part) for part in parts[:GUEST]]) for name, *parts in rows}
    except (ValueError, IndexError):
        return {}


def _count_ticks(parts: list[int]) -> ProcessorTicks:
    stolen = parts[STOLEN] if len(parts) > STOLEN else 0
    return ProcessorTicks(sum(parts) - parts[IDLE] - parts[DISK_WAIT], sum(parts), stolen)
