"""The functions of two sides beside each other, what differs most first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Profile = Mapping[str, Any]
# By function and file: calls and own seconds, per step. Not by line: an edit above a function moves it.
Costs = dict[tuple[str, str], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """One function on both sides, per step; a side that doesn't call it has zeros."""

    function: str
    file: str
    phase: str
    calls_base: float
    calls_head: float
    own_base: float
    own_head: float

    @property
    def own_difference(self) -> float:
        return self.own_head - self.own_base

    @property
    def calls_difference(self) -> float:
        return self.calls_head - self.calls_base


def function_rows(base: Profile, head: Profile) -> list[FunctionRow]:
    """The functions whose calls or times differ, by the difference of their own time, then of their calls."""
    before, after = sum_costs(base["functions"]), sum_costs(head["functions"])
    phases = {
        (row["function"], row["file"]): row.get("phase") or ""
        for row in (*base["functions"], *head["functions"])
    }
    rows = [
        FunctionRow(
            *name,
            phases[name],
            before.get(name, (0.0, 0.0))[0],
            after.get(name, (0.0, 0.0))[0],
            before.get(name, (0.0, 0.0))[1],
            after.get(name, (0.0, 0.0))[1],
        )
        for name in dict.fromkeys((*before, *after))
    ]
    differing = [row for row in rows if row.own_difference or row.calls_difference]
    return sorted(
        differing,
        key=lambda row: (-abs(row.own_difference), -abs(row.calls_difference), row.file, row.function),
    )


def sum_costs(functions: Iterable[Mapping[str, Any]]) -> Costs:
    sums: Costs = {}
    for row in functions:
        name = (str(row["function"]), str(row["file"]))
        calls, own = sums.get(name, (0.0, 0.0))
        sums[name] = calls + row["calls"], own + row["self"]
    return sums
