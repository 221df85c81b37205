"""Metrics and profile of the counting processes. A counter is exact if two countings gave the same."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import metrics
from .document import UNATTRIBUTED
from .statistics import median

FUNCTION_LIMIT = 200
OPERATION_LIMIT = 200
# What item() and the conversions to a Python number come down to.
SCALAR_READ = "aten::_local_scalar_dense"

Raw = dict[str, Any]
Counted = Mapping[str, Any]
Numbers = dict[tuple[str, str | None], float]


def values(counted: Sequence[Counted]) -> list[Raw]:
    """Return the metric rows, one sample per counting; headlines aren't marked yet."""
    numbers = [_numbers(one) for one in counted]
    places = dict.fromkeys(place for found in numbers for place in found)
    rows = [_row(place, [found.get(place, 0.0) for found in numbers]) for place in places]
    return rows + [
        _row(("phase_memory", path), [float(one["memory"].get(path, 0)) for one in counted])
        for path in dict.fromkeys(path for one in counted for path in one["memory"])
    ]


def profile(counted: Counted) -> Raw:
    """Return the document's profile from one counting, bounded: the rest is summed."""
    rows = sorted(counted["functions"], key=_weight, reverse=True)
    most_called = sorted(rows, key=lambda row: -math.fsum(row["calls"].values()))[: FUNCTION_LIMIT // 4]
    # Half by own time would lose the cheap function that is suddenly called a thousand times.
    kept = list({_place(row): row for row in [*most_called, *rows]}.values())[:FUNCTION_LIMIT]
    names = {_place(row) for row in kept}
    rest = [row for row in rows if _place(row) not in names]
    return {
        "steps": counted["steps"],
        "functions": [_function(row) for row in sorted(kept, key=_weight, reverse=True)],
        "rest": {
            "functions": len(rest),
            "calls": math.fsum(math.fsum(row["calls"].values()) for row in rest),
            "self": math.fsum(row["self"] for row in rest),
        },
        "operations": _kinds(counted["operations"] or {}),
    }


def inexact(counted: Sequence[Counted]) -> list[str]:
    """Return the names of the counters that two countings gave differently."""
    numbers = [_numbers(one) for one in counted]
    places = {place for found in numbers for place in found}
    return sorted(
        {name for name, path in places if len({found.get((name, path), 0.0) for found in numbers}) > 1}
    )


def _numbers(counted: Counted) -> Numbers:
    found: Numbers = _with_sum("function_calls", counted["calls"])
    operations = counted["operations"]
    if operations is not None:
        found |= _with_sum("tensor_operations", {p: sum(t["kinds"].values()) for p, t in operations.items()})
        found |= _with_sum("scalar_reads", {p: t["kinds"].get(SCALAR_READ, 0) for p, t in operations.items()})
        for name in ("host_device_copies", "copied_bytes", "synchronisations"):
            found |= _with_sum(name, {path: tally[name] for path, tally in operations.items()})
    return found


def _with_sum(name: str, phases: Mapping[str, float]) -> Numbers:
    """Return the whole under None beside the phases; a phase that has none of it is left out."""
    found: Numbers = {(name, None): math.fsum(phases.values())}
    return found | {(name, path): float(number) for path, number in sorted(phases.items()) if number}


def _row(place: tuple[str, str | None], samples: list[float]) -> Raw:
    known = metrics.METRICS[place[0]]
    counter = known.kind == "counter"
    return {
        "name": known.name,
        "unit": known.unit,
        "better": known.better,
        "kind": known.kind,
        "phase": place[1],
        "exact": counter and len(samples) > 1 and len(set(samples)) == 1,
        "value": median(samples),
        "low": None,
        "high": None,
        "samples": samples,
    }


def _function(row: Mapping[str, Any]) -> Raw:
    calls: Mapping[str, float] = row["calls"]
    busiest = max(calls, key=lambda path: calls[path], default=None)
    total = math.fsum(calls.values())
    return {
        **{name: row[name] for name in ("function", "file", "line", "self", "cumulative")},
        "calls": total,
        "phase": busiest if total and busiest != UNATTRIBUTED else None,
    }


def _kinds(operations: Mapping[str, Mapping[str, Any]]) -> list[Raw]:
    kinds: dict[str, float] = {}
    for name, number in _pairs(operations.values()):
        kinds[name] = kinds.get(name, 0.0) + number
    ordered = sorted(kinds.items(), key=lambda pair: (-pair[1], pair[0]))
    return [{"name": name, "count": number} for name, number in ordered[:OPERATION_LIMIT]]


def _pairs(tallies: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, float]]:
    return (pair for tally in tallies for pair in tally["kinds"].items())


def _weight(row: Mapping[str, Any]) -> float:
    return float(row["self"])


def _place(row: Mapping[str, Any]) -> tuple[str, str, int]:
    return row["function"], row["file"], row["line"]
