"""Which tensor operations grew between two profiles, phase by phase.

Their seconds are the host's, and are part of those of the functions that call them: they are ranked beside
the functions, not among them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dashboard.regressions.phases import holds

MOST = 10
# What grew by less than this part of all growth isn't worth a line.
LEAST = 0.05

Profile = Mapping[str, Any]
Key = tuple[str, str]  # operation, phase
Tallies = Mapping[Key, tuple[float, float]]  # number and seconds per step


def rank(before: Profile | None, after: Profile | None, *, kind: str, phase: str) -> list[dict[str, Any]]:
    """At most MOST operations: those in `phase` first, then by growth. Empty without a profile on both sides.

    `kind` is the metric's: by seconds for time and rate, by number for counters. For memory none: what an
    operation allocates isn't kept by its name. `share` is that of all growth.
    """
    if kind == "memory" or not rows(before) or not rows(after):
        return []
    by_phase = all(row.get("phases") for profile in (before, after) for row in rows(profile))
    old, new = tallies(before, by_phase), tallies(after, by_phase)
    place = 0 if kind == "counter" else 1
    grown = {key: now[place] - old.get(key, (0.0, 0.0))[place] for key, now in new.items()}
    whole = sum(growth for growth in grown.values() if growth > 0)
    worst = sorted(
        (key for key, growth in grown.items() if growth > 0 and growth >= LEAST * whole),
        key=lambda key: (not inside(phase, key[1]), -grown[key], key),
    )
    return [described(key, old.get(key, (0.0, 0.0)), new[key], grown[key] / whole) for key in worst[:MOST]]


def rows(profile: Profile | None) -> Sequence[Mapping[str, Any]]:
    return (profile or {}).get("operations") or ()


def tallies(profile: Profile | None, by_phase: bool) -> Tallies:
    """Older documents don't say in which phase: then each operation is one."""
    found: defaultdict[Key, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for row in rows(profile):
        parts: Iterable[Mapping[str, Any]] = row["phases"] if by_phase else [row]
        for part in parts:
            key = row["name"], part.get("phase", "")
            number, seconds = found[key]
            found[key] = number + part["count"], seconds + part.get("seconds", 0.0)
    return found


def inside(phase: str, other: str) -> bool:
    return bool(phase) and holds(phase, other)


def described(
    key: Key, before: tuple[float, float], after: tuple[float, float], share: float
) -> dict[str, Any]:
    """As the regression keeps it: number and seconds per step."""
    return {
        "operation": key[0],
        "phase": key[1],
        "count_before": before[0],
        "count_after": after[0],
        "seconds_before": before[1],
        "seconds_after": after[1],
        "share": share,
    }
