"""Metrics of the counting processes. A counter is exact if two countings gave the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from . import metrics
from .statistics import median

Raw = dict[str, Any]
Counted = Mapping[str, Any]
Numbers = dict[tuple[str, str | None], float]

TALLIED = (
    "host_device_copies",
    "copied_bytes",
    "scalar_reads",
    "synchronisations",
    "tensors_allocated",
    "allocated_bytes",
    "optimizer_steps",
)


def values(counted: Sequence[Counted]) -> list[Raw]:
    """Return the metric rows, one sample per counting; headlines aren't marked yet."""
    numbers = [_numbers(one) for one in counted]
    places = dict.fromkeys(place for found in numbers for place in found)
    unsure = _displaced(counted)
    rows = [_row(place, [found.get(place, 0.0) for found in numbers], unsure) for place in places]
    return rows + [
        _row(("phase_memory", path), [float(one["memory"].get(path, 0)) for one in counted], unsure)
        for path in dict.fromkeys(path for one in counted for path in one["memory"])
    ]


def inexact(counted: Sequence[Counted]) -> list[str]:
    """Return the names of the counters that two countings gave differently, or that were disturbed."""
    numbers = [_numbers(one) for one in counted]
    places = {place for found in numbers for place in found}
    differing = {
        name for name, path in places if len({found.get((name, path), 0.0) for found in numbers}) > 1
    }
    reported = {
        f"count.{name}"
        for name in {name for one in counted for name in one["counts"]}
        if len(counted) > 1 and not _repeats(name, counted)
    }
    disturbed = _displaced(counted) & {name for name, _ in places}
    return sorted(differing | reported | disturbed)


def with_exact(rows: Sequence[Raw], counted: Sequence[Counted]) -> list[Raw]:
    """Return the timed metrics, exact where the code counts the same in all countings and repetitions.

    Their values stay those of the timed window, which is longer and runs at the code's own speed: a count of
    missed deadlines depends on it.
    """
    return [
        {**row, "exact": _repeats(row["name"].removeprefix("count."), counted) and _agree(row["samples"])}
        if row["name"].startswith("count.")
        else row
        for row in rows
    ]


def _repeats(name: str, counted: Sequence[Counted]) -> bool:
    return len(counted) > 1 and _agree([one["counts"].get(name) for one in counted])


def _agree(samples: Sequence[float | None]) -> bool:
    return len(set(samples)) == 1


def _displaced(counted: Sequence[Counted]) -> set[str]:
    """Return what wasn't counted whole, since the code set a profile of its own."""
    return {"function_calls", "graph_breaks"} if any(one["displaced"] for one in counted) else set()


def _numbers(counted: Counted) -> Numbers:
    found: Numbers = _with_sum("function_calls", counted["calls"])
    operations = counted["operations"]
    if operations is not None:
        found |= _with_sum("tensor_operations", {p: sum(t["kinds"].values()) for p, t in operations.items()})
        for name in TALLIED:
            found |= _with_sum(name, {path: tally[name] for path, tally in operations.items()})
        for name in ("graph_breaks", "recompilations"):
            found |= _with_sum(name, counted[name])
    return found


def _with_sum(name: str, phases: Mapping[str, float]) -> Numbers:
    """Return the whole under None beside the phases; a phase that has none of it is left out."""
    found: Numbers = {(name, None): math.fsum(phases.values())}
    return found | {(name, path): float(number) for path, number in sorted(phases.items()) if number}


def _row(place: tuple[str, str | None], samples: list[float], unsure: set[str]) -> Raw:
    known = metrics.METRICS[place[0]]
    counter = known.kind == "counter" and known.name not in unsure
    return {
        "name": known.name,
        "unit": known.unit,
        "better": known.better,
        "kind": known.kind,
        "phase": place[1],
        "exact": counter and len(samples) > 1 and _agree(samples),
        "value": median(samples),
        "low": None,
        "high": None,
        "samples": samples,
    }
