"""What a series page shows, as CSV and as JSON: every run of the part, also where the chart draws a few."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from dashboard.models import Series
from dashboard.pages.csv_cells import safe_cell
from dashboard.pages.series.phases import has_phases, read_phases
from dashboard.pages.series.trend import SeriesTrend, read_series_trend
from dashboard.querysets import series as series_queries
from dashboard.querysets.series_points import SeriesPoint, points_of_runs
from dashboard.sentences.formatting.change_sizes import format_change_size, shown_step

COLUMNS = (
    *("line", "series", "branch", "position", "commit", "committed_at", "run", "value", "low", "high"),
    *("unit", "tainted", "doubts", "change_percent"),
)


class EchoedLine:
    """What `csv` writes into: it hands each line back."""

    @staticmethod
    def write(line: str) -> str:
        return line


@require_safe
def series_csv(request: HttpRequest, pk: int) -> HttpResponse:
    trend = _read_trend(request, pk)
    writer = csv.writer(EchoedLine())
    rows = (writer.writerow([safe_cell(row[column]) for column in COLUMNS]) for row in exported_rows(trend))
    name = f"series-{trend.series.pk}.csv"
    return HttpResponse(
        "".join([writer.writerow(COLUMNS), *rows]),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@require_safe
def series_json(request: HttpRequest, pk: int) -> JsonResponse:
    trend = _read_trend(request, pk)
    series = trend.series
    return JsonResponse(
        {
            "series": series.pk,
            "project": series.case.project.slug,
            "case": str(series.case),
            "pool": series.pool.name,
            "version": series.version,
            "quick": series.quick,
            "metric": series.metric.name,
            "phase": series.phase,
            "unit": series.metric.unit,
            "better": series.metric.better,
            "branch": trend.branch,
            "relative": trend.reference.name,
            "reference": trend.reference.value,
            "points": list(exported_rows(trend)),
            "changes": [_exported_change(change) for change in trend.changes],
            "failed": [
                {
                    "position": event.position,
                    "commit": event.hash,
                    "run": event.run,
                    "failure": event.failure,
                    "reason": event.reason,
                }
                for event in trend.events
                if event.run
            ],
            "environment": [
                {"position": marker.position, "run": marker.run, "text": marker.text}
                for marker in trend.markers
            ],
        },
        json_dumps_params={"allow_nan": False},
    )


def _read_trend(request: HttpRequest, pk: int) -> SeriesTrend:
    return read_series_trend(request, get_object_or_404(series_queries.series_with_related(), pk=pk))


def exported_rows(trend: SeriesTrend) -> Iterator[dict[str, Any]]:
    """The page's own line, then those beside it, each oldest first; of the view of phases its phases."""
    if trend.query.by_phase and has_phases(trend.series, trend.related):
        yield from _phase_rows(trend)
        return
    for point in _read_points(trend.series, [row.run for row in trend.shown]):
        yield _exported_row("", trend.series, trend.branch, point, trend.reference.value)
    for line in trend.lines:
        for point in _read_points(line.series, [run for _, run, _ in line.rows]):
            yield _exported_row(line.name, line.series, line.branch, point, line.reference)


def _read_points(series: Series, runs: list[int]) -> list[SeriesPoint]:
    """Oldest first."""
    return sorted(points_of_runs([series.pk], runs), key=lambda point: (point.position, point.run))


def _exported_row(
    line: str, series: Series, branch: str, point: SeriesPoint, reference: float | None
) -> dict[str, Any]:
    return {
        "line": line,
        "series": series.pk,
        "branch": branch,
        "position": point.position,
        "commit": point.commit.hash,
        "committed_at": point.commit.committed_at.isoformat(),
        "run": point.run,
        "value": point.value,
        "low": point.low,
        "high": point.high,
        "unit": series.metric.unit,
        "tainted": point.tainted,
        "doubts": " ".join(point.warning_codes),
        "change_percent": 100 * (point.value / reference - 1) if reference else None,
    }


def _phase_rows(trend: SeriesTrend) -> Iterator[dict[str, Any]]:
    """Of the runs that the chart draws, whose phases are read for it."""
    table = read_phases(trend)
    of_runs = {point.run: point for point in _read_points(trend.series, [row.run for row in table.runs])}
    for phase in table.phases:
        for row, value in zip(table.runs, phase.values, strict=True):
            if value is None:
                continue
            point = of_runs[row.run]._replace(value=value, low=None, high=None)
            yield {**_exported_row(phase.name, trend.series, trend.branch, point, None), "unit": "s"}


def _exported_change(change: Any) -> dict[str, Any]:
    return {
        "position": change.position,
        "first_bad": change.first_bad.hash,
        "last_good": change.last_good.hash,
        "direction": change.direction,
        "before": change.known_before,
        "after": change.known_after,
        "ratio": change.ratio,
        "regression": change.regression_id,
        "size": format_change_size(shown_step(change)),
    }
