"""Which tensor operations grew between two profiles, phase by phase.

Their seconds are the host's, and are part of those of the functions that call them: they are ranked beside
the functions, not among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dashboard.models import Regression
from dashboard.phases.paths import is_in_phase
from dashboard.profile_tallies import NOTHING, OperationKey, Profile, operation_rows, tally_operations

MOST_OPERATIONS = 10
# What grew by less than this part of all growth isn't worth a line, unless the phase does it more often.
LEAST_GROWTH_SHARE = 0.05


def rank_operations(
    before: Profile | None, after: Profile | None, *, kind: str, phase: str, delta: float | None
) -> list[dict[str, Any]]:
    """MOST_OPERATIONS at most: those in `phase` first, of these what is done more often, then by growth.

    `kind` is the metric's: by seconds for time and rate, by number for counters. For memory none: what an
    operation allocates isn't kept by its name; nor for a quality: no time says why it is lost. `share` is
    that of all growth, or of `delta`, what a time lost in seconds per step, if that is more. Where a
    phase explains the loss, what is done as often elsewhere is only noise. Empty without a profile on
    both sides.
    """
    if kind in ("memory", "quality") or not operation_rows(before) or not operation_rows(after):
        return []
    by_phase = all(row.get("phases") for profile in (before, after) for row in operation_rows(profile))
    old, new = tally_operations(before, by_phase), tally_operations(after, by_phase)
    counted, lost = (0, 0.0) if kind == "counter" else (1, delta or 0.0)
    every = [Operation(key, old.get(key, NOTHING), now, counted) for key, now in new.items()]
    grown = [operation for operation in every if operation.growth > 0]
    whole = max(sum(operation.growth for operation in grown), lost)
    worth = [operation for operation in grown if operation.is_worth(phase, whole)]
    worth.sort(
        key=lambda operation: (
            not operation.is_inside(phase),
            not operation.is_more,
            -operation.growth,
            operation.key,
        )
    )
    return [operation.described(whole) for operation in worth[:MOST_OPERATIONS]]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation in a phase: (number, seconds) per step before and after; `counted` is which of them."""

    key: OperationKey
    before: tuple[float, float]
    after: tuple[float, float]
    counted: int

    @property
    def growth(self) -> float:
        return self.after[self.counted] - self.before[self.counted]

    @property
    def is_more(self) -> bool:
        """True where it is done more often."""
        return self.after[0] >= Regression.MORE_CALLS * self.before[0]

    def is_inside(self, phase: str) -> bool:
        return bool(phase) and is_in_phase(self.key[1], phase)

    def is_worth(self, phase: str, whole: float) -> bool:
        if phase and self.key[1] and not self.is_inside(phase) and not self.is_more:
            return False
        return self.growth >= LEAST_GROWTH_SHARE * whole or (self.is_inside(phase) and self.is_more)

    def described(self, whole: float) -> dict[str, Any]:
        """As the regression keeps it: number and seconds per step."""
        return {
            "operation": self.key[0],
            "phase": self.key[1],
            "count_before": self.before[0],
            "count_after": self.after[0],
            "seconds_before": self.before[1],
            "seconds_after": self.after[1],
            "share": self.growth / whole,
        }
