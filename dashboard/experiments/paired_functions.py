"""The functions of two sides beside each other, what differs most first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.profile_tallies import NOTHING, Tally, listed_in

Profile = Mapping[str, Any]
# By function and file. Not by line: an edit above a function moves it.
Costs = Mapping[tuple[str, str], Tally]


@dataclass(frozen=True, slots=True)
class PairedCosts:
    """Calls and own seconds on both sides, per step; a side without any has zeros."""

    base: Tally
    head: Tally

    @property
    def calls_base(self) -> float:
        return self.base[0]

    @property
    def calls_head(self) -> float:
        return self.head[0]

    @property
    def own_base(self) -> float:
        return self.base[1]

    @property
    def own_head(self) -> float:
        return self.head[1]

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
    before, after = listed_costs(base, head)
    phases = {
        (row["function"], row["file"]): row.get("phase") or ""
        for row in (*base["functions"], *head["functions"])
    }
    rows = [
        FunctionRow(before.get(name, NOTHING), after.get(name, NOTHING), *name, phases[name])
        for name in dict.fromkeys((*before, *after))
    ]
    differing = [row for row in rows if row.own_difference or row.calls_difference]
    return sorted(
        differing,
        key=lambda row: (-abs(row.own_difference), -abs(row.calls_difference), row.file, row.function),
    )


def listed_costs(base: Profile, head: Profile) -> tuple[Costs, Costs]:
    """Those of both sides; without functions that one lists alone, and the other may have in its rest."""
    before, after = (sum_costs(profile.get("functions") or ()) for profile in (base, head))
    return listed_in(before, after, head), listed_in(after, before, base)


def sum_costs(functions: Iterable[Mapping[str, Any]]) -> Costs:
    sums: dict[tuple[str, str], Tally] = {}
    for row in functions:
        name = (str(row["function"]), str(row["file"]))
        calls, own = sums.get(name, NOTHING)
        sums[name] = calls + row["calls"], own + row["self"]
    return sums
