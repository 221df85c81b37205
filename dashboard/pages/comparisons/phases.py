"""The phases of two sides beside each other: a figure and the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.charts import phases as phase_charts
from dashboard.charts import theme
from dashboard.experiments.paired_phases import PairedPhases
from dashboard.phases.shares import whole_of_parts

# Phases beside the chart; the others are one click away.
FIRST_ROWS = 6
# Units that stand behind each number of the table.
WRITTEN_UNITS = ("s", "bytes")


@dataclass(frozen=True, slots=True)
class PhaseComparison:
    """What is drawn: values by phase, of which `deltas` are the parts where they aren't the difference.

    Shares are of `whole`, where it is known, else of all parts together.
    """

    before: Mapping[str, float]
    after: Mapping[str, float]
    unit: str
    title: str
    deltas: Mapping[str, float] | None = None
    at: str = ""
    whole: float | None = None


def compare_by_pairs(paired: PairedPhases) -> PhaseComparison:
    if paired.at:
        return sweep_comparison(paired.before, paired.after, paired.deltas, paired.at)
    return PhaseComparison(paired.before, paired.after, "s", "per step, own time")


def sweep_comparison(
    before: Mapping[str, float], after: Mapping[str, float], parts: Mapping[str, float], at: str
) -> PhaseComparison:
    return PhaseComparison(before, after, "s", f"of {at}, own time", parts, at)


def drawn_comparison(
    comparison: PhaseComparison, names: tuple[str, str] = ("before", "after")
) -> dict[str, Any]:
    """The context of the figure and of the table, largest part first; `names` are those of the sides."""
    old, new, unit, title = comparison.before, comparison.after, comparison.unit, comparison.title
    rows = comparison_rows(old, new, comparison.deltas, comparison.whole)
    # Beside each number the name of a count would leave no room for the others.
    counted = unit not in WRITTEN_UNITS
    drawn = phase_charts.draw_phase_comparison(old, new, unit, title, names=names) if old and new else None
    return {
        "phase_figure": theme.figure_json(drawn) if drawn else "",
        "phase_rows": rows[:FIRST_ROWS],
        "phase_rest": rows[FIRST_ROWS:],
        "phase_unit": "1" if counted else unit,
        "phase_counted": unit if counted else "",
        "phase_at": comparison.at,
    }


def comparison_rows(
    old: Mapping[str, float],
    new: Mapping[str, float],
    deltas: Mapping[str, float] | None,
    whole: float | None = None,
) -> list[dict[str, Any]]:
    moved = {path: new.get(path, 0.0) - old.get(path, 0.0) for path in old.keys() | new.keys()}
    parts = moved if deltas is None else {path: deltas.get(path, 0.0) for path in moved}
    whole = whole_of_parts(parts.values()) if whole is None else whole
    return [
        {
            "path": path,
            "before": old.get(path),
            "after": new.get(path),
            "delta": moved[path],
            "share": parts[path] / whole if whole else None,
        }
        for path in sorted(parts, key=lambda path: (-abs(parts[path]), path))
    ]
