"""A regression's phases for its page: before and after, each with its share of the difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.charts import phases as phase_charts
from dashboard.charts import theme
from dashboard.experiments.paired_phases import PairedPhases, paired_phases
from dashboard.models import Experiment, Metric, Regression
from dashboard.phases import sweeps
from dashboard.phases.paths import is_in_phase
from dashboard.querysets import regressions as regression_queries

# Phases beside the chart; the others are one click away.
FIRST_ROWS = 6


@dataclass(frozen=True, slots=True)
class PhaseComparison:
    """What is drawn: values by phase, of which `deltas` are the parts where they aren't the difference."""

    before: Mapping[str, float]
    after: Mapping[str, float]
    unit: str
    title: str
    deltas: Mapping[str, float] | None = None
    at: str = ""


def phase_comparison_context(regression: Regression, sizing: Experiment | None) -> dict[str, Any]:
    """Both commits' phases side by side: a figure and the rows of a table, largest part first.

    By `sizing`, the experiment that says how large it is, else by the runs of the two commits. In a phase's
    own series it shows that phase and those nested in it.
    """
    paired = paired_phases(sizing) if sizing else None
    comparison = _compare_by_pairs(paired) if paired else _compare_by_runs(regression)
    old, new = (
        {path: value for path, value in values.items() if is_in_phase(path, regression.series.phase)}
        for values in (comparison.before, comparison.after)
    )
    rows = _comparison_rows(old, new, comparison.deltas)
    unit, title = comparison.unit, comparison.title
    drawn = phase_charts.draw_phase_comparison(old, new, unit, title) if old and new else None
    return {
        "phase_figure": theme.figure_json(drawn) if drawn else "",
        "phase_rows": rows[:FIRST_ROWS],
        "phase_rest": rows[FIRST_ROWS:],
        "phase_unit": unit,
        "phase_title": title,
        "phase_pairs": paired,
        "phase_experiment": sizing,
        "phase_at": comparison.at,
    }


def _compare_by_pairs(paired: PairedPhases) -> PhaseComparison:
    if paired.at:
        return _sweep_comparison(paired.before, paired.after, paired.deltas, paired.at)
    return PhaseComparison(paired.before, paired.after, "s", "per step, own time")


def _compare_by_runs(regression: Regression) -> PhaseComparison:
    metric = regression.series.metric
    if sweeps.may_be_read_off_sweep(regression.series):
        runs = regression_queries.runs_around_step(regression)
        if len(runs) == 2 and (compared := sweeps.compare_runs(regression.series, runs[:1], runs[1:])):
            old, new = ({path: both[side] for path, both in compared.at_largest.items()} for side in (0, 1))
            return _sweep_comparison(old, new, compared.parts, compared.at)
        if metric.is_exponent:
            return PhaseComparison({}, {}, "s", "")
    before, after = regression_queries.phases_around_step(regression)
    if metric.kind == Metric.Kind.MEMORY:
        return PhaseComparison(before, after, "bytes", "that the phase grew by")
    if metric.kind == Metric.Kind.COUNTER:
        return PhaseComparison(before, after, metric.unit, "")
    return PhaseComparison(before, after, "s", "per step, own time")


def _sweep_comparison(
    before: Mapping[str, float], after: Mapping[str, float], parts: Mapping[str, float], at: str
) -> PhaseComparison:
    return PhaseComparison(before, after, "s", f"of {at}, own time", parts, at)


def _comparison_rows(
    old: Mapping[str, float], new: Mapping[str, float], deltas: Mapping[str, float] | None
) -> list[dict[str, Any]]:
    moved = {path: new.get(path, 0.0) - old.get(path, 0.0) for path in old.keys() | new.keys()}
    parts = moved if deltas is None else {path: deltas.get(path, 0.0) for path in moved}
    whole = sum(parts.values())
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
