"""What a run cost: the seconds of each of its parts, which add up to the whole.

Processes that run side by side cost the time of the longest; its parts stand for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import CLOCK_BOOTTIME, clock_gettime
from typing import Any

from ..measurement import Measurement, TimedRepetition
from ..system.processes import read_process_stat

Raw = dict[str, Any]

# From the start of a process to its first step, the steps before its window, the window, and what the script
# does after it. The countings have the same parts.
START, WARMUP, WINDOW, AFTER = "start", "warmup", "window", "after"
COUNTING = "counting"
DISTURBED, SWEEP, LEARNING, CALIBRATION = "disturbed", "sweep", "learning", "calibration"
PROFILED = "profiled"  # the repetition that tells where a device's time went
HARNESS = "harness"  # the rest: its own start, the machine's state, the document


def build_costs(run: Measurement, began: float, now: float) -> Raw:
    """The document's member `costs`; `began` is when this process started, both by the repetitions' clock."""
    spent = [_split_repetition(repetition) for repetition in run.timed]
    parts = [
        _part_row(part, [split[part] for split in spent])
        for part in (START, WARMUP, WINDOW, AFTER, CALIBRATION)
    ]
    parts.append(_part_row(DISTURBED, [repetition.took for repetition in run.set_aside]))
    parts += _counting_rows(run.counted, run.stages.get(COUNTING, 0.0))
    parts.append({"part": SWEEP, "seconds": run.stages.get(SWEEP, 0.0), "processes": len(run.points)})
    parts.append({"part": LEARNING, "seconds": run.stages.get(LEARNING, 0.0), "processes": len(run.learned)})
    parts.append({"part": PROFILED, "seconds": run.stages.get(PROFILED, 0.0), "processes": 1})
    parts = [row for row in parts if row["seconds"] > 0 and row["processes"]]
    total = now - began
    rest = max(0.0, total - sum(row["seconds"] for row in parts))
    return {
        "seconds": total,
        "measured": sum(split[WINDOW] for split in spent),
        "parts": [*parts, {"part": HARNESS, "seconds": rest, "processes": 1}],
    }


def _part_row(part: str, seconds: Sequence[float]) -> Raw:
    return {"part": part, "seconds": sum(seconds), "processes": len(seconds)}


def _split_repetition(repetition: TimedRepetition) -> dict[str, float]:
    opened, closed = repetition.window
    first_step = repetition.result["first_step"] - repetition.started
    return {
        START: max(0.0, first_step),
        WARMUP: max(0.0, opened - first_step),
        WINDOW: closed - opened,
        AFTER: max(0.0, repetition.ran - closed),
        CALIBRATION: max(0.0, repetition.took - repetition.ran),
    }


def _counting_rows(counted: Sequence[Mapping[str, Any]], took: float) -> list[Raw]:
    if not counted:
        return []
    times = counted[0]["times"]
    started, first_step = times["started"], times["first_step"]
    split = {
        START: first_step - started,
        WARMUP: times["opened"] - first_step,
        WINDOW: times["closed"] - times["opened"],
        AFTER: started + took - times["closed"],
    }
    return [
        {"part": f"{COUNTING} {part}", "seconds": max(0.0, seconds), "processes": len(counted)}
        for part, seconds in split.items()
    ]


def process_age() -> float:
    """Seconds since this process was started; 0 where the system doesn't tell."""
    stat = read_process_stat("self")
    return max(0.0, clock_gettime(CLOCK_BOOTTIME) - stat.started_at) if stat else 0.0
