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
from dashboard.pages import words
from dashboard.pages.costs import precision_sentence
from dashboard.pages.paging import whole_number
from dashboard.querysets import limits
from dashboard.querysets import series as read
from dashboard.querysets.regressions import precision

SHOWN, MOST_SHOWN = 200, 1000
CHOICES = (50, 200, 1000)
AROUND = 30
# How the parts of a machine's fingerprint are called where a person reads them.
FINGERPRINT = {
    "cpu_model": "CPU",
    "cpu_count": "CPUs",
    "memory_bytes": "memory",
    "gpus": "GPUs",
    "os": "system",
}


@require_safe
def series(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(read.identified(), pk=pk)
    show = max(1, whole_number(request, "show", SHOWN, MOST_SHOWN))
    until = whole_number(request, "until", 0, 2**31 - 1) if "until" in request.GET else None
    points = read.newest_points(found, show, until)
    changes = read.changes(found, points[0].position, points[-1].position) if points else []
    bounds = limits.in_range(found, points[0].position, points[-1].position) if points else []
    neighbours = sorted(
        read.siblings(found), key=lambda other: words.metric_place(other.metric.name, other.phase)
    )
    context = {
        "series": found,
        "name": words.series_name(found),
        "project": found.case.project,
        "meaning": words.meaning(found.metric.name),
        "figure": theme.figure_json(drawing(found, points, changes, bounds)) if points else "",
        "points": points[::-1],
        "changes": changes[::-1],
        "precision": precision_sentence(precision(found)),
        "limit": bounds[-1] if bounds else None,
        "bound": words.bound(bounds[-1].minimum, bounds[-1].maximum, found.metric.unit) if bounds else "",
        "crossed": {bound.run_id for bound in bounds if bound.crossed},
        "markers": machine_changes(points)[::-1],
        "headlines": [other for other in neighbours if other.headline],
        "others": [other for other in neighbours if not other.headline],
        "show": show,
        "until": until,
        "choices": CHOICES,
        "older": points[0].position - 1 if len(points) == show and points[0].position > 0 else None,
    }
    return render(request, "series.html", context)


def drawing(
    found: Series, points: list[Point], changes: list[Change], bounds: list[Limit], height: int = 400
) -> Any:
    """The trend of these points, at least one, oldest first."""
    latest = getattr(found, "latest", None)
    return draw_trend(
        [_point(point) for point in points],
        [_change(change) for change in changes],
        found.metric.unit,
        latest.level if latest else None,
        markers=[TrendMarker(found["point"].position, found["text"]) for found in machine_changes(points)],
        limits=[TrendLimit(bound.position, bound.minimum, bound.maximum) for bound in bounds],
        height=height,
    )


def drawing_around(regression: Regression) -> str:
    """The series of a regression, as the figure's JSON, with its step well inside; empty without points."""
    found = get_object_or_404(read.identified(), pk=regression.series_id)
    points = read.newest_points(found, 2 * AROUND, regression.first_bad.position + AROUND)
    if not points:
        return ""
    changes = read.changes(found, points[0].position, points[-1].position)
    bounds = limits.in_range(found, points[0].position, points[-1].position)
    return theme.figure_json(drawing(found, points, changes, bounds, height=320))


def machine_changes(points: list[Point]) -> list[dict[str, Any]]:
    """Each point before which the measuring machine became another: what differs, in a word and in full."""
    found = []
    for before, after in pairwise(points):
        old, new = before.run.fingerprint, after.run.fingerprint
        keys = [key for key in new if old and new[key] != old.get(key)]
        if keys:
            full = "; ".join(
                f"{FINGERPRINT.get(key, key)} {_said(old.get(key))} → {_said(new[key])}" for key in keys
            )
            text = ", ".join(FINGERPRINT.get(key, key) for key in keys)
            found.append({"point": after, "text": text, "full": full})
    return found


def _said(value: object) -> str:
    if isinstance(value, list):
        return (
            ", ".join(str(one.get("name", one) if isinstance(one, dict) else one) for one in value) or "none"
        )
    return "unknown" if value is None else str(value)


def _point(point: Point) -> TrendPoint:
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


def _change(change: Change) -> TrendChange:
    return TrendChange(
        position=change.position,
        before=change.before,
        after=change.after,
        size=words.moved(change),
        worse=words.is_worse(change),
        url=change.regression.get_absolute_url() if change.regression else "",
    )
