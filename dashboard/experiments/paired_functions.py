"""The functions of two sides beside each other, what differs most first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Profile = Mapping[str, Any]
# By function and file: calls and own seconds, per step. Not by line: an edit above a function moves it.
Costs = Mapping[tuple[str, str], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class PairedCosts:
    """Calls and own seconds on both sides, per step; a side without any has zeros."""

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


@dataclass(frozen=True, slots=True)
class FunctionRow(PairedCosts):
    """One function on both sides."""

    function: str
    file: str
    phase: str


def function_rows(base: Profile, head: Profile) -> list[FunctionRow]:
    """The functions whose calls or times differ, by the difference of their own time, then of their calls."""
    before, after = sum_costs(base["functions"]), sum_costs(head["functions"])
    phases = {
        (row["function"], row["file"]): row.get("phase") or ""
        for row in (*base["functions"], *head["functions"])
    }
    rows = [
        FunctionRow(*pair_costs(before, after, name), *name, phases[name])
        for name in dict.fromkeys((*before, *after))
    ]
    differing = [row for row in rows if row.own_difference or row.calls_difference]
    return sorted(
        differing,
        key=lambda row: (-abs(row.own_difference), -abs(row.calls_difference), row.file, row.function),
    )


def pair_costs(before: Costs, after: Costs, name: tuple[str, str]) -> tuple[float, float, float, float]:
    """The numbers of PairedCosts."""
    base, head = before.get(name, (0.0, 0.0)), after.get(name, (0.0, 0.0))
    return base[0], head[0], base[1], head[1]


def sum_costs(functions: Iterable[Mapping[str, Any]]) -> Costs:
    sums: dict[tuple[str, str], tuple[float, float]] = {}
    for row in functions:
        name = (str(row["function"]), str(row["file"]))
        calls, own = sums.get(name, (0.0, 0.0))
        sums[name] = calls + row["calls"], own + row["self"]
    return sums
