"""One series: its trend over the commits of the branch, with the numbers beside it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from dashboard.charts import theme
from dashboard.charts.limit_lines import TrendLimit
from dashboard.charts.trend import TrendChange, TrendMarker, TrendPoint, draw_trend
from dashboard.models import Change, Limit, Point, Regression, Series
from dashboard.pages.costs import precision_sentence
from dashboard.pages.paging import parse_whole_number
from dashboard.querysets import limits
from dashboard.querysets import series as series_queries
from dashboard.querysets.regressions import alarm_precision
from dashboard.sentences import labels
from dashboard.sentences.limits import format_limit

SHOWN, MOST_SHOWN = 200, 1000
CHOICES = (50, 200, 1000)
POINTS_AROUND = 30
# What a person calls the parts of a machine's fingerprint.
FINGERPRINT = {
    "cpu_model": "CPU",
    "cpu_count": "CPUs",
    "memory_bytes": "memory",
    "gpus": "GPUs",
    "os": "system",
}


@require_safe
def series_page(request: HttpRequest, pk: int) -> HttpResponse:
    series = get_object_or_404(series_queries.series_with_related(), pk=pk)
    show = max(1, parse_whole_number(request, "show", SHOWN, MOST_SHOWN))
    until = parse_whole_number(request, "until", 0, 2**31 - 1) if "until" in request.GET else None
    points = series_queries.newest_points(series, show, until)
    span = (points[0].position, points[-1].position) if points else (0, -1)
    changes = series_queries.changes_between(series, *span) if points else []
    bounds = limits.limits_between(series, *span) if points else []
    siblings = sorted(
        series_queries.sibling_series(series),
        key=lambda sibling: labels.metric_sort_key(sibling.metric.name, sibling.phase),
    )
    newest_limit = bounds[-1] if bounds else None
    context = {
        "series": series,
        "name": labels.series_label(series),
        "project": series.case.project,
        "meaning": labels.metric_description(series.metric.name),
        "figure": theme.figure_json(draw_series(series, points, changes, bounds)) if points else "",
        "points": points[::-1],
        "changes": changes[::-1],
        "precision": precision_sentence(alarm_precision(series)),
        "limit": newest_limit,
        "bound": format_limit(newest_limit, series.metric.unit) if newest_limit else "",
        "crossed": {bound.run_id for bound in bounds if bound.crossed},
        "markers": machine_changes(points)[::-1],
        "headlines": [sibling for sibling in siblings if sibling.headline],
        "others": [sibling for sibling in siblings if not sibling.headline],
        "show": show,
        "until": until,
        "choices": CHOICES,
        "older": points[0].position - 1 if len(points) == show and points[0].position > 0 else None,
    }
    return render(request, "series.html", context)


def draw_series(
    series: Series, points: list[Point], changes: list[Change], bounds: list[Limit], height: int = 400
) -> Any:
    """The trend of these points, at least one, oldest first."""
    latest = getattr(series, "latest", None)
    return draw_trend(
        [_trend_point(point) for point in points],
        [_trend_change(change) for change in changes],
        series.metric.unit,
        latest.level if latest else None,
        markers=[TrendMarker(change["point"].position, change["text"]) for change in machine_changes(points)],
        limits=[TrendLimit(bound.position, bound.minimum, bound.maximum) for bound in bounds],
        height=height,
    )


def regression_trend_json(regression: Regression) -> str:
    """The series of a regression, as the figure's JSON, with its step well inside; empty without points."""
    series = get_object_or_404(series_queries.series_with_related(), pk=regression.series_id)
    until = regression.first_bad.position + POINTS_AROUND
    points = series_queries.newest_points(series, 2 * POINTS_AROUND, until)
    if not points:
        return ""
    span = (points[0].position, points[-1].position)
    changes = series_queries.changes_between(series, *span)
    bounds = limits.limits_between(series, *span)
    return theme.figure_json(draw_series(series, points, changes, bounds, height=320))


def machine_changes(points: list[Point]) -> list[dict[str, Any]]:
    """Each point before which the measuring machine became another: what differs, in a word and in full."""
    changes = []
    for before, after in pairwise(points):
        old, new = before.run.fingerprint, after.run.fingerprint
        keys = [key for key in new if old and new[key] != old.get(key)]
        if keys:
            full = "; ".join(
                f"{FINGERPRINT.get(key, key)} {_format_fingerprint_value(old.get(key))} "
                f"→ {_format_fingerprint_value(new[key])}"
                for key in keys
            )
            text = ", ".join(FINGERPRINT.get(key, key) for key in keys)
            changes.append({"point": after, "text": text, "full": full})
    return changes


def _format_fingerprint_value(value: object) -> str:
    if isinstance(value, list):
        names = (item.get("name", item) if isinstance(item, dict) else item for item in value)
        return ", ".join(str(name) for name in names) or "none"
    return "unknown" if value is None else str(value)


def _trend_point(point: Point) -> TrendPoint:
    commit = point.run.commit
    return TrendPoint(
        position=point.position,
        value=point.value,
        low=point.low,
        high=point.high,
        samples=point.samples,
        tainted=point.tainted,
        commit=commit.short,
        subject=commit.subject,
        url=point.run.get_absolute_url(),
    )


def _trend_change(change: Change) -> TrendChange:
    return TrendChange(
        position=change.position,
        before=change.before,
        after=change.after,
        size=labels.format_change_size(change),
        worse=labels.is_worse(change),
        url=change.regression.get_absolute_url() if change.regression else "",
    )
