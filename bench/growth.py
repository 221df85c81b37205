"""How much the measured process grows because it is measured: resident memory over a million steps."""

from __future__ import annotations

import gc
import subprocess
import sys

from paceline.measured.resident_memory import ResidentMemory
from paceline.measured.timing import TimingRecorder

from .lines import Line, format_part

MEGABYTE = 10**6


def measure_growth(steps: int) -> str:
    """Return the table of the growth, each row measured in a fresh process."""
    lines = [
        _growth_line(kind, steps) for kind in ("empty steps", "steps with two phases", "steps with two laps")
    ]
    return format_part(f"Memory that {steps:,} steps leave behind", ["", "bytes", "a million steps"], lines)


def _growth_line(kind: str, steps: int) -> Line:
    command = [sys.executable, "-m", "bench.growth", kind, str(steps)]
    grown = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    rate = grown / steps * 1e6
    return Line(kind, f"{grown:,}", f"{rate / MEGABYTE:.3f} MB", "under 1 MB", rate < MEGABYTE)


def bytes_grown(kind: str, steps: int) -> int:
    """Return by how many bytes this process grew in its window."""
    timing, resident, before = TimingRecorder(100, steps, lambda _: None), ResidentMemory(), 0
    for number in timing.steps(range(2 * steps)):
        if kind.endswith("phases"):
            with timing.phase("learn"), timing.phase("backward"):
                pass
        elif kind.endswith("laps"):
            timing.lap("act")
            timing.lap("learn")
        if number == 200:
            gc.collect()
            before = resident.read()
    return resident.read() - before


if __name__ == "__main__":
    print(bytes_grown(sys.argv[1], int(sys.argv[2])))
