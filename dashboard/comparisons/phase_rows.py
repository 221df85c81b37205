"""The phases of two sides beside each other, the largest difference first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dashboard.detection.types import Verdict
from dashboard.phases.shares import whole_of_parts


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """Own seconds per step of a phase; None where a side lacks it.

    `share` is that of all differences; None where these mostly cancel each other. `verdict` is that of the
    phase's own time among all metrics.
    """

    path: str
    base: float | None
    head: float | None
    share: float | None
    verdict: Verdict = "?"

    @property
    def difference(self) -> float:
        return (self.head or 0.0) - (self.base or 0.0)


def pair_phases(
    base: Mapping[str, float], head: Mapping[str, float], verdicts: Mapping[str, Verdict] | None = None
) -> list[PhaseRow]:
    """Empty where a side has no phases at all; `verdicts` by phase."""
    if not base or not head:
        return []
    paths = dict.fromkeys((*base, *head))
    whole = whole_of_parts([head.get(path, 0.0) - base.get(path, 0.0) for path in paths])
    known = verdicts or {}
    rows = [PhaseRow(path, base.get(path), head.get(path), None, known.get(path, "?")) for path in paths]
    shared = [replace(row, share=row.difference / whole) for row in rows] if whole else rows
    return sorted(shared, key=lambda row: (-abs(row.difference), row.path))
