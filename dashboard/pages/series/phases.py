"""The phases of a series' runs over commits: which are drawn, and their rows in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.charts.phase_stack import StackedPhase, StackedRun, draw_phase_stack
from dashboard.charts.theme import Figure
from dashboard.models import Series
from dashboard.pages.series.trend import SeriesTrend, choose_drawn
from dashboard.querysets.series_points import SeriesPoint
from dashboard.querysets.trends import TrendRow, phase_values

MOST_PHASES, MOST_RUNS = 8, 200
WHOLE, OWN_TIME = "step_time", "phase_self_time"
# Of these an own time in each phase is a part.
PARTED = (WHOLE, "throughput")
REST = "everything else"


@dataclass(frozen=True, slots=True)
class PhaseTable:
    """The phases of these runs, the largest first, with what no phase that is drawn explains at the end."""

    runs: Sequence[TrendRow]
    phases: Sequence[StackedPhase]


def has_phases(series: Series, related: Sequence[Series]) -> bool:
    """Whether the metric is one that phases add up to, and there are phases."""
    return not series.phase and series.metric.name in PARTED and bool(_phase_series(series, related))


def _phase_series(series: Series, related: Sequence[Series]) -> list[Series]:
    """Of the own times of the same configuration those that were largest last."""
    of_phases = [
        other
        for other in related
        if other.configuration_id == series.configuration_id and other.metric.name == OWN_TIME
    ]
    return sorted(of_phases, key=_newest_value, reverse=True)[:MOST_PHASES]


def _newest_value(series: Any) -> float:
    return series.newest_value or 0.0


def read_phases(trend: SeriesTrend) -> PhaseTable:
    """Of the untainted runs that are shown, of a longer line those that tell."""
    clean = [row for row in trend.drawn if not row.tainted]
    runs = choose_drawn(clean, [change.position for change in trend.changes], MOST_RUNS)
    chosen = _phase_series(trend.series, trend.related)
    whole = [
        other
        for other in trend.related
        if other.configuration_id == trend.series.configuration_id
        and (other.metric.name, other.phase) == (WHOLE, "")
    ]
    found = phase_values([*chosen, *whole], [row.run for row in runs])
    phases = [
        StackedPhase(series.phase, [found.get((series.pk, row.run)) for row in runs], hue)
        for hue, series in enumerate(chosen)
    ]
    rest = [_unexplained_time(phases, index, found, whole, row) for index, row in enumerate(runs)]
    return PhaseTable(runs, [*phases, StackedPhase(REST, rest, -1)] if whole else phases)


def _unexplained_time(
    phases: Sequence[StackedPhase],
    index: int,
    found: dict[tuple[int, int], float],
    whole: Sequence[Series],
    row: TrendRow,
) -> float | None:
    """Medians of phases may add up to a little more than that of the step."""
    step = found.get((whole[0].pk, row.run)) if whole else None
    if step is None:
        return None
    return max(0.0, step - sum(phase.values[index] or 0.0 for phase in phases))


def draw_phases(trend: SeriesTrend, table: PhaseTable) -> Figure:
    """Of a table with at least one run."""
    points = {point.run: point for point in trend.points.values()}
    runs = [_stacked_run(row, points.get(row.run)) for row in table.runs]
    return draw_phase_stack(runs, table.phases, by_date=trend.query.by_date)


def _stacked_run(row: TrendRow, point: SeriesPoint | None) -> StackedRun:
    commit = point.commit if point else None
    return StackedRun(
        position=row.position,
        commit=commit.short if commit else "",
        url=point.run_address if point else "",
        at=commit.committed_at if commit else None,
    )


def phase_rows(table: PhaseTable) -> list[dict[str, object]]:
    """Of each phase its first and its newest value, and the difference."""
    rows: list[dict[str, object]] = []
    for phase in table.phases:
        known = [value for value in phase.values if value is not None]
        first, newest = (known[0], known[-1]) if known else (None, None)
        delta = newest - first if first is not None and newest is not None else None
        rows.append({"phase": phase, "first": first, "newest": newest, "delta": delta})
    return rows
