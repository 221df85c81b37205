"""A regression's phases for its page: before and after, each with its share of the difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.charts import phases as phase_charts
from dashboard.charts import theme
from dashboard.models import Confirmation, Metric, Regression
from dashboard.querysets import regressions as read
from dashboard.regressions import sweeps
from dashboard.regressions.paired import Phases, phases_of
from dashboard.regressions.phases import holds

# Phases beside the chart; the others are one click away.
FEW = 6


@dataclass(frozen=True, slots=True)
class _Beside:
    """What is drawn: values by phase, of which `deltas` are the parts where they aren't the difference."""

    before: Mapping[str, float]
    after: Mapping[str, float]
    unit: str
    title: str
    deltas: Mapping[str, float] | None = None
    at: str = ""


def phases_beside(found: Regression, confirmations: list[Confirmation]) -> dict[str, Any]:
    """Both commits' phases side by side: a figure and the rows of a table, largest part first.

    By the interleaved runs that proved it, else by the runs of the two commits. Of what is seen in a phase's
    own series, that phase and those nested in it.
    """
    paired = phases_of(found, confirmations)
    beside = _of_pairs(paired) if paired else _of_runs(found)
    old, new = (
        {path: value for path, value in one.items() if holds(found.series.phase, path)}
        for one in (beside.before, beside.after)
    )
    rows = _rows(old, new, beside.deltas)
    drawn = phase_charts.draw_phase_comparison(old, new, beside.unit, beside.title) if old and new else None
    return {
        "phase_figure": theme.figure_json(drawn) if drawn else "",
        "phase_rows": rows[:FEW],
        "phase_rest": rows[FEW:],
        "phase_unit": beside.unit,
        "phase_title": beside.title,
        "phase_pairs": paired,
        "phase_at": beside.at,
    }


def _of_pairs(paired: Phases) -> _Beside:
    if paired.at:
        return _swept(paired.before, paired.after, paired.deltas, paired.at)
    return _Beside(paired.before, paired.after, "s", "per step, own time")


def _of_runs(found: Regression) -> _Beside:
    metric = found.series.metric
    if sweeps.may_be_read(found.series):
        runs = read.runs_around(found)
        if len(runs) == 2 and (compared := sweeps.between(found.series, runs[:1], runs[1:])):
            old, new = ({path: both[side] for path, both in compared.at_largest.items()} for side in (0, 1))
            return _swept(old, new, compared.parts, compared.at)
        if metric.is_exponent:
            return _Beside({}, {}, "s", "")
    before, after = read.phases_around(found)
    if metric.kind == Metric.Kind.MEMORY:
        return _Beside(before, after, "bytes", "that the phase grew by")
    if metric.kind == Metric.Kind.COUNTER:
        return _Beside(before, after, metric.unit, "")
    return _Beside(before, after, "s", "per step, own time")


def _swept(
    before: Mapping[str, float], after: Mapping[str, float], parts: Mapping[str, float], at: str
) -> _Beside:
    return _Beside(before, after, "s", f"of {at}, own time", parts, at)


def _rows(
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
