"""Commit ranges, as positions on a branch: where the cause of a change may lie."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """Positions on a branch after `good`, up to and with `bad`."""

    good: int
    bad: int

    @property
    def width(self) -> int:
        """How many commits it holds."""
        return self.bad - self.good

    def overlap(self, other: Range) -> Range | None:
        """The commits that are in both; None where there are none."""
        good, bad = max(self.good, other.good), min(self.bad, other.bad)
        return Range(good, bad) if good < bad else None

    def holds(self, inner: Range) -> bool:
        """True where every commit of the other range is in this one."""
        return self.good <= inner.good and inner.bad <= self.bad
