"""What the profiles and timelines of a document say, summed per step: by operation, by kernel, altogether."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from paceline.profile import may_be_in_rest, most_in_rest

# A profiled step takes so many times as long as a measured one; more than this above the least was slowed.
SLOWED_FACTOR = 1.2
ON_DEVICE = "cuda"

Profile = Mapping[str, Any]
Timeline = Mapping[str, Any]
Tally = tuple[float, float]  # number and seconds per step
OperationKey = tuple[str, str]  # operation, phase
KernelKey = tuple[str, str, str]  # kernel, operation, phase
NOTHING: Tally = (0.0, 0.0)


def profiled_seconds(profile: Profile) -> float:
    """What all functions took together, per profiled step."""
    rest = (profile.get("rest") or {}).get("self", 0.0)
    return float(sum(function["self"] for function in profile["functions"]) + rest)


def listed_in(
    costs: Mapping[tuple[str, str], Tally], others: Mapping[tuple[str, str], Tally], other: Profile
) -> dict[tuple[str, str], Tally]:
    """Costs of functions that are among the `others` too, or that the `other` profile surely lacks."""
    own_times = [float(row["self"]) for row in other.get("functions") or ()]
    most = most_in_rest(other.get("rest") or {}, own_times)
    return {name: tally for name, tally in costs.items() if name in others or not may_be_in_rest(tally, most)}


def operation_rows(profile: Profile | None) -> Sequence[Mapping[str, Any]]:
    return (profile or {}).get("operations") or ()


def tally_operations(profile: Profile | None, by_phase: bool) -> Mapping[OperationKey, Tally]:
    """Older documents don't say in which phase: then each operation is one."""
    found: defaultdict[OperationKey, Tally] = defaultdict(lambda: NOTHING)
    for row in operation_rows(profile):
        parts: Iterable[Mapping[str, Any]] = row["phases"] if by_phase else [row]
        for part in parts:
            key = row["name"], part.get("phase", "")
            number, seconds = found[key]
            found[key] = number + part["count"], seconds + part.get("seconds", 0.0)
    return found


def is_computing(row: Mapping[str, Any]) -> bool:
    """Whether a row of a timeline is neither a copy nor a kernel of NCCL, which sends and waits.

    What of these no kernel hides is among the idle time.
    """
    return row["kind"] != "copy" and not is_collective(row)


def is_collective(row: Mapping[str, Any]) -> bool:
    return bool(row["kind"] == "kernel" and row["name"].startswith("nccl"))


def tally_kernels(timeline: Timeline) -> dict[KernelKey, Tally]:
    """Those that compute."""
    found: defaultdict[KernelKey, Tally] = defaultdict(lambda: NOTHING)
    for row in timeline["rows"]:
        if is_computing(row):
            key = row["name"], row["operation"], row["phase"]
            number, seconds = found[key]
            found[key] = number + row["count"], seconds + row["seconds"]
    return dict(found)
