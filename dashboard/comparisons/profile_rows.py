"""Functions, tensor operations and kernels of two profiles: what is new, gone, done more or less often.

Numbers of calls are exact; times are those of a few profiled steps, which the profile itself slows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from dashboard.experiments.paired_functions import Costs, PairedCosts, listed_costs
from dashboard.models import Run
from dashboard.profile_tallies import (
    NOTHING,
    ON_DEVICE,
    SLOWED_FACTOR,
    operation_rows,
    profiled_seconds,
    tally_kernels,
    tally_operations,
)

What = Literal["new", "gone", "more", "fewer", "slower", "faster"]
# What is done as often is only shown where its time moved by this part of all that moved: the rest is noise.
MUCH_OF_ALL = 0.1
# Of the runs of a side, the newest ones may lend their profile.
NEAREST = 3
LINE = re.compile(r":\d+$")

Profile = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProfileRow(PairedCosts):
    """A function, operation or kernel on both sides. `where`: its file, or its phase. Without `has_times` its
    seconds are unknown, or tell nothing."""

    name: str
    where: str
    has_times: bool = True

    @property
    def what(self) -> What:
        if not self.calls_base and self.calls_head:
            return "new"
        if self.calls_base and not self.calls_head:
            return "gone"
        if self.calls_difference:
            return "more" if self.calls_difference > 0 else "fewer"
        return "slower" if self.own_difference > 0 else "faster"


@dataclass(frozen=True, slots=True)
class StackPair:
    """A stack, outermost first: own seconds and calls per step of its last frame on both sides."""

    frames: tuple[str, ...]
    base: tuple[float, float]
    head: tuple[float, float]


@dataclass(frozen=True, slots=True)
class ProfileComparison:
    """What two profiles differ in; `runs` lent them. `missing` are the sides that have none.

    Of `tainted` runs calls are compared, and no times.
    """

    functions: Sequence[ProfileRow] = ()
    operations: Sequence[ProfileRow] = ()
    kernels: Sequence[ProfileRow] = ()
    stacks: Sequence[StackPair] = ()
    runs: tuple[int, int] | None = None
    missing: tuple[str, ...] = ()
    tainted: tuple[int, ...] = ()


def choose_profile(
    runs: Iterable[Run], documents: Mapping[int, Mapping[str, Any]], step_times: Mapping[int, float]
) -> tuple[int, Profile] | None:
    """(run, profile) of the newest run that nothing slowed while it was profiled; None where none has one."""
    known = [run.pk for run in runs if (documents.get(run.pk) or {}).get("profile")]
    profiles: dict[int, Profile] = {run: documents[run]["profile"] for run in known}
    paces = {
        run: profiled_seconds(profile) / step_times[run]
        for run, profile in profiles.items()
        if step_times.get(run)
    }
    most = SLOWED_FACTOR * min(paces.values(), default=0.0)
    unslowed = [run for run in known if run in paces and paces[run] <= most]
    return next(((run, profiles[run]) for run in (*unslowed, *known)), None)


def compare_profiles(base: Profile, head: Profile, *, has_times: bool = True) -> ProfileComparison:
    """Of functions, operations and stacks; by their calls alone where the times tell nothing."""
    by_phase = all(row.get("phases") for profile in (base, head) for row in operation_rows(profile))
    tallies = (tally_operations(base, by_phase), tally_operations(head, by_phase))
    timed = all("seconds" in row for profile in (base, head) for row in operation_rows(profile))
    return ProfileComparison(
        functions=differing_rows(*listed_costs(base, head), has_times=has_times),
        operations=differing_rows(*tallies, has_times=has_times and timed),
        stacks=pair_stacks(base.get("stacks") or (), head.get("stacks") or ()),
    )


def compare_kernels(documents: Iterable[Mapping[str, Any] | None]) -> Sequence[ProfileRow]:
    """Of the timelines of a device, where both sides have one; a row for each kernel, operation and phase."""
    timelines = [(document or {}).get("device_profile") or {} for document in documents]
    if any(timeline.get("device") != ON_DEVICE for timeline in timelines):
        return ()
    before, after = (
        {
            (f"{kernel} ({operation})" if operation else kernel, phase): tally
            for (kernel, operation, phase), tally in tally_kernels(timeline).items()
        }
        for timeline in timelines
    )
    return differing_rows(before, after)


def differing_rows(before: Costs, after: Costs, *, has_times: bool = True) -> list[ProfileRow]:
    """What is done otherwise, by the time that moved; what is done as often last, where much of all moved."""
    names = dict.fromkeys((*before, *after))
    rows = [
        ProfileRow(before.get(name, NOTHING), after.get(name, NOTHING), *name, has_times) for name in names
    ]
    moved = sum(abs(row.own_difference) for row in rows)
    kept = [
        row
        for row in rows
        if row.calls_difference or (has_times and abs(row.own_difference) > MUCH_OF_ALL * moved)
    ]
    return sorted(
        kept,
        key=lambda row: (
            not row.calls_difference,
            -abs(row.own_difference),
            -abs(row.calls_difference),
            row.name,
            row.where,
        ),
    )


def pair_stacks(base: Iterable[Mapping[str, Any]], head: Iterable[Mapping[str, Any]]) -> list[StackPair]:
    """Without line numbers, which an edit above a function moves; empty where a side has no stacks."""
    sums = [_sum_stacks(base), _sum_stacks(head)]
    if not all(sums):
        return []
    names = dict.fromkeys((*sums[0], *sums[1]))
    return [StackPair(name, sums[0].get(name, NOTHING), sums[1].get(name, NOTHING)) for name in names]


def _sum_stacks(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, ...], tuple[float, float]]:
    sums: dict[tuple[str, ...], tuple[float, float]] = {}
    for row in rows:
        name = tuple(LINE.sub("", frame) for frame in row["stack"])
        own, calls = sums.get(name, NOTHING)
        sums[name] = own + row["self"], calls + row["calls"]
    return sums


def median_by_name(values: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: float(median(found)) for name, found in values.items()}
