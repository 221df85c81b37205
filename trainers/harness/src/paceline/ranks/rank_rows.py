"""The document's member `ranks`, from what each rank of each repetition left."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..statistics import median
from .straggler import Arrivals, compare_arrivals, find_slowest
from .waiting import waiting_seconds

Raw = dict[str, Any]
Result = Mapping[str, Any]
# Ranks whose windows differ by less count as equally long: the lowest of them is the one that is shown.
EQUAL_SHARE = 0.01
# Of what the slowest rank takes longer than the others, a phase explains it that has so much.
EXPLAINED_SHARE = 0.5
PHASES_LIMIT = 100


def choose_measured_rank(results: Sequence[Result]) -> int:
    """Return the index of the rank with the longest steps: a step is as long as its slowest rank."""
    longest = max(float(result["seconds"]) for result in results)
    return next(
        index for index, result in enumerate(results) if result["seconds"] >= longest * (1 - EQUAL_SHARE)
    )


def build_ranks_member(repetitions: Sequence[Sequence[Result]]) -> Raw | None:
    """Return the member for repetitions of some ranks' results each; None where there is one process."""
    if not repetitions or len(repetitions[0]) < 2:
        return None
    compared = [_compare_ranks(ranks) for ranks in repetitions]
    slowest, reason = find_slowest(compared)
    phase, excess = (None, None) if slowest is None else _explain_slowest(repetitions, slowest)
    return {
        "world_size": len(repetitions[0]),
        "rows": [
            row
            for index, (ranks, arrivals) in enumerate(zip(repetitions, compared, strict=True))
            for row in _repetition_rows(index, ranks, arrivals)
        ],
        "slowest": None if slowest is None else repetitions[0][slowest]["rank"],
        "reason": reason,
        "phase": phase,
        "excess": excess,
    }


def _compare_ranks(ranks: Sequence[Result]) -> Arrivals:
    logs = [result["collectives"] for result in ranks]
    if any(log is None or not log["order"] for log in logs):
        return Arrivals((), 0, "no_collectives")
    if any(log["on_device"] for log in logs):
        return Arrivals((), 0, "device_collectives")
    step_time = median([result["step_time"]["mean"] for result in ranks])
    orders, arrived = [log["order"] for log in logs], [log["arrived"] for log in logs]
    return compare_arrivals(orders, arrived, ranks[0]["steps"], step_time)


def _repetition_rows(repetition: int, ranks: Sequence[Result], arrivals: Arrivals) -> list[Raw]:
    waits = waiting_seconds([result["collectives"] for result in ranks]) if arrivals.ranks else None
    return [
        _rank_row(repetition, place, result, arrivals, waits[place] if waits else None)
        for place, result in enumerate(ranks)
    ]


def _rank_row(repetition: int, place: int, result: Result, arrivals: Arrivals, waits: float | None) -> Raw:
    late = arrivals.ranks[place] if arrivals.ranks else None
    log = result["collectives"] or {"kinds": [], "overlap": None}
    return {
        "repetition": repetition,
        "rank": result["rank"],
        "step_time": result["seconds"] / result["steps"],
        "own_time": own_time(result),
        "collectives": log["kinds"],
        "overlap": log["overlap"],
        "late": late.mean if late else None,
        "waits": None if waits is None else waits / result["steps"],
        "last": late.last if late else None,
        "of": arrivals.collectives,
        "peak_memory": result["peak_memory"],
        "device_memory": (result["device_memory"] or {}).get("allocated"),
        "device": result.get("device"),
        "phases": {
            row["path"]: row["total"] for row in result["phases"][:PHASES_LIMIT] if row["thread"] == "main"
        },
    }


def own_time(result: Result) -> float | None:
    """Return a rank's step without the time blocked in collectives; None where the host doesn't block."""
    log, step = result["collectives"], result["seconds"] / result["steps"]
    if log is None:
        return float(step)
    blocked = math.fsum(kind["seconds"] for kind in log["kinds"])
    return None if log["on_device"] else max(0.0, step - blocked)


def _explain_slowest(
    repetitions: Sequence[Sequence[Result]], slowest: int
) -> tuple[str | None, float | None]:
    """Return the phase in which the slowest rank takes longer than the others, and by how much."""
    paths = dict.fromkeys(path for ranks in repetitions for result in ranks for path in _own_times(result))
    excess = {
        path: median([_excess_of([_own_times(result).get(path, 0.0) for result in ranks], slowest)
                      for ranks in repetitions])
        for path in paths
    }  # fmt: skip
    path = max(excess, key=lambda name: excess[name])
    gained = math.fsum(seconds for seconds in excess.values() if seconds > 0)
    return (path, excess[path]) if excess[path] > EXPLAINED_SHARE * gained else (None, None)


def _excess_of(seconds: Sequence[float], place: int) -> float:
    return seconds[place] - median([other for index, other in enumerate(seconds) if index != place])


def _own_times(result: Result) -> dict[str, float]:
    """Return the main thread's seconds per step by phase, without nested phases and without collectives."""
    kinds = {kind["kind"] for kind in (result["collectives"] or {"kinds": ()})["kinds"]}
    return {
        row["path"]: row["self"]
        for row in result["phases"]
        if row["thread"] == "main" and row["path"].rpartition("/")[2] not in kinds
    }
