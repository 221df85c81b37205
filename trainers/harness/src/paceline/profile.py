"""The document's profile: functions, stacks and tensor operations of one counting, at a bounded size.

Two profiles are subtracted by the names of functions and files: an edit above a function moves its line.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .document_rows import Profile
from .phase_names import UNATTRIBUTED

FUNCTION_LIMIT = 200
OPERATION_LIMIT = 200
OPERATION_PHASES = 20

Raw = dict[str, Any]
Counted = Mapping[str, Any]


def build_profile(counted: Counted) -> Raw:
    """Return the document's profile from one counting, bounded: the rest is summed."""
    kept, rest = _split_at_limit(
        counted["functions"], FUNCTION_LIMIT, lambda row: math.fsum(row["calls"].values())
    )
    operations, other_operations = _split_at_limit(
        _operation_rows(counted["operations"] or {}), OPERATION_LIMIT, lambda row: row["count"]
    )
    stacks = counted["stacks"]
    return {
        "steps": counted["steps"],
        "functions": [_function_row(row) for row in sorted(kept, key=_self_seconds, reverse=True)],
        "rest": {
            "functions": len(rest),
            "calls": math.fsum(math.fsum(row["calls"].values()) for row in rest),
            "self": math.fsum(row["self"] for row in rest),
            **{f"stack_{name}" if name != "stacks" else name: sum_ for name, sum_ in stacks["rest"].items()},
            "operations": len(other_operations),
            "operation_count": math.fsum(row["count"] for row in other_operations),
            "operation_seconds": math.fsum(row["self"] for row in other_operations),
        },
        "operations": [
            {
                "name": row["name"],
                "count": row["count"],
                "seconds": row["self"],
                "phases": _operation_phases(row["name"], counted["operations"] or {}),
            }
            for row in sorted(operations, key=lambda row: (-row["count"], row["name"]))
        ],
        "stacks": stacks["rows"],
        "graph_breaks": counted["graph_break_places"],
    }


@dataclass(frozen=True, slots=True)
class Difference:
    """How much more one function, stack or operation does per step after than before: calls, own seconds."""

    name: tuple[str, ...]
    calls: float
    self_time: float


@dataclass(frozen=True, slots=True)
class Differences:
    """Two profiles subtracted, each part with the largest difference of own time first."""

    functions: list[Difference]
    stacks: list[Difference]
    operations: list[Difference]


def subtract_profiles(before: Profile, after: Profile) -> Differences:
    """Return what differs between two profiles; a name is (function, file), the frames, or (operation,).

    What one profile doesn't list counts as nothing there; functions that may be in its rest are left out.
    """
    functions = _function_sums(before), _function_sums(after)
    unlisted = {
        name
        for profile, others, own in ((before, functions[1], functions[0]), (after, *functions))
        for most in [most_in_rest(profile.rest, [row.self_time for row in profile.functions])]
        for name in others.keys() - own.keys()
        if may_be_in_rest(others[name], most)
    }
    return Differences(
        [row for row in _subtract_sums(*functions) if row.name not in unlisted],
        _subtract_sums(_stack_sums(before), _stack_sums(after)),
        _subtract_sums(_operation_sums(before), _operation_sums(after)),
    )


Sums = dict[tuple[str, ...], tuple[float, float]]


def _function_sums(profile: Profile) -> Sums:
    return _sum_by_name(((row.function, row.file), row.calls, row.self_time) for row in profile.functions)


def most_in_rest(rest: Mapping[str, float], own_times: Sequence[float]) -> tuple[float, float] | None:
    """Return the most calls and own seconds per step of a function that a profile may hold in its `rest`.

    `own_times` are of the functions that it lists; None where it lists all.
    """
    if not own_times or not rest.get("functions"):
        return None
    # Listed are the heaviest, and up to a quarter for their calls; no time is measured twice alike.
    return rest["calls"], sorted(own_times)[len(own_times) // 4]


def may_be_in_rest(function: tuple[float, float], most: tuple[float, float] | None) -> bool:
    """Return whether calls and own seconds per step are no more than `most_in_rest` says."""
    return most is not None and function[0] <= most[0] and function[1] <= most[1]


def _stack_sums(profile: Profile) -> Sums:
    return _sum_by_name(
        (tuple(re.sub(r":\d+$", "", frame) for frame in row.stack), row.calls, row.self_time)
        for row in profile.stacks
    )


def _operation_sums(profile: Profile) -> Sums:
    counts, seconds = profile.operations, profile.operation_seconds
    return _sum_by_name(((name,), count, seconds.get(name, 0.0)) for name, count in counts.items())


def _sum_by_name(rows: Iterable[tuple[tuple[str, ...], float, float]]) -> Sums:
    sums: defaultdict[tuple[str, ...], tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for name, calls, own in rows:
        sums[name] = sums[name][0] + calls, sums[name][1] + own
    return dict(sums)


def _subtract_sums(before: Sums, after: Sums) -> list[Difference]:
    nothing = (0.0, 0.0)
    rows = [
        Difference(
            name,
            after.get(name, nothing)[0] - before.get(name, nothing)[0],
            after.get(name, nothing)[1] - before.get(name, nothing)[1],
        )
        for name in dict.fromkeys((*before, *after))
    ]
    differing = [row for row in rows if row.calls or row.self_time]
    return sorted(differing, key=lambda row: (-abs(row.self_time), -abs(row.calls), row.name))


def _split_at_limit(
    rows: Iterable[Raw], limit: int, number: Callable[[Raw], float]
) -> tuple[list[Raw], list[Raw]]:
    """Return the rows to keep, and all others."""
    ordered = sorted(rows, key=_self_seconds, reverse=True)
    # By own time alone, a cheap function that is suddenly called a thousand times would be lost.
    most_called = {id(row) for row in sorted(ordered, key=number, reverse=True)[: limit // 4]}
    heaviest = [row for row in ordered if id(row) not in most_called][: limit - len(most_called)]
    kept = most_called | {id(row) for row in heaviest}
    return [row for row in ordered if id(row) in kept], [row for row in ordered if id(row) not in kept]


def _function_row(row: Mapping[str, Any]) -> Raw:
    calls: Mapping[str, float] = row["calls"]
    busiest = max(calls, key=lambda path: calls[path], default=None)
    total = math.fsum(calls.values())
    return {
        **{name: row[name] for name in ("function", "file", "line", "self", "cumulative")},
        "calls": total,
        "phase": busiest if total and busiest != UNATTRIBUTED else None,
    }


def _operation_rows(operations: Mapping[str, Mapping[str, Any]]) -> list[Raw]:
    """Return the operations of all phases by name."""
    sums = _sum_by_name(
        ((name,), number, tally["seconds"][name])
        for tally in operations.values()
        for name, number in tally["kinds"].items()
    )
    return [{"name": name, "count": count, "self": own} for (name,), (count, own) in sorted(sums.items())]


def _operation_phases(name: str, operations: Mapping[str, Mapping[str, Any]]) -> list[Raw]:
    """Return an operation's numbers and seconds in the phases that it is used most in."""
    phases = [
        {"phase": path, "count": tally["kinds"][name], "seconds": tally["seconds"][name]}
        for path, tally in operations.items()
        if name in tally["kinds"]
    ]
    return sorted(phases, key=lambda row: (-row["count"], row["phase"]))[:OPERATION_PHASES]


def _self_seconds(row: Mapping[str, Any]) -> float:
    return float(row["self"])
