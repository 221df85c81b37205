"""One series: its trend over the commits of the branch, with the numbers beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from dashboard.charts import theme
from dashboard.charts.baseline_line import TrendBaseline
from dashboard.charts.limit_lines import TrendLimit
from dashboard.charts.trend import TrendChange, TrendMarker, TrendPoint, draw_trend
from dashboard.environments import (
    Difference,
    RunEnvironments,
    compare_environments,
)
from dashboard.models import Change, Limit, Point, Regression, Series
from dashboard.pages.experiment_links import series_fields
from dashboard.pages.paging import parse_whole_number
from dashboard.pages.series_baseline import baseline_context, read_baseline
from dashboard.pages.shared_pictures import preview_of
from dashboard.querysets import limits
from dashboard.querysets import series as series_queries
from dashboard.querysets.regressions import alarm_precision, learning_lost_at
from dashboard.repositories import LONGEST_BRANCH
from dashboard.sentences import labels
from dashboard.sentences.costs import precision_sentence
from dashboard.sentences.limits import format_limit

SHOWN, MOST_SHOWN = 200, 1000
CHOICES = (50, 200, 1000)
POINTS_AROUND = 30


@require_safe
def series_page(request: HttpRequest, pk: int) -> HttpResponse:
    series = get_object_or_404(series_queries.series_with_related(), pk=pk)
    show = max(1, parse_whole_number(request, "show", SHOWN, MOST_SHOWN))
    until = parse_whole_number(request, "until", 0, 2**31 - 1) if "until" in request.GET else None
    project = series.case.project
    branch = request.GET.get("branch", "")[:LONGEST_BRANCH].replace("\0", "") or project.branch
    points = series_queries.newest_points(series, show, until, branch)
    span = (points[0].position, points[-1].position) if points else (0, -1)
    changes = series_queries.changes_between(series, *span) if points else []
    if branch != project.branch:
        changes = [change for change in changes if change.first_bad.branch == branch]
    bounds = limits.limits_between(series, *span) if points else []
    baseline = read_baseline(request, series, branch, points, changes)
    siblings = sorted(
        series_queries.sibling_series(series),
        key=lambda sibling: labels.metric_sort_key(sibling.metric.name, sibling.phase),
    )
    newest_limit = bounds[-1] if bounds else None
    markers = environment_markers(points)
    context = {
        "series": series,
        "name": labels.series_label(series),
        "preview": preview_of(series),
        "project": project,
        "meaning": labels.metric_description(series.metric.name),
        "figure": theme.figure_json(
            draw_series(series, points, changes, bounds, markers, baseline=baseline.trend_line)
        )
        if points
        else "",
        **baseline_context(series, baseline, points, branch),
        "points": points[::-1],
        "changes": changes[::-1],
        "no_gain": learning_lost_at(changes),
        "precision": precision_sentence(alarm_precision(series)),
        "limit": newest_limit,
        "bound": format_limit(newest_limit, series.metric.unit) if newest_limit else "",
        "crossed": {bound.run_id for bound in bounds if bound.crossed},
        "markers": markers[::-1],
        "headlines": [sibling for sibling in siblings if sibling.headline],
        "others": [sibling for sibling in siblings if not sibling.headline],
        "show": show,
        "until": until,
        "choices": CHOICES,
        "comparing": series_fields(series) if project.repository and len(points) > 1 else None,
        "older": points[0].position - 1 if len(points) == show and points[0].position > 0 else None,
    }
    return render(request, "series.html", context)


def draw_series(
    series: Series,
    points: list[Point],
    changes: list[Change],
    bounds: list[Limit],
    markers: list[EnvironmentMarker],
    height: int = 400,
    baseline: TrendBaseline | None = None,
) -> theme.Figure:
    """The trend of these points, at least one, oldest first."""
    # Only the project's branch has levels.
    on_branch = points[-1].run.commit.branch == series.case.project.branch
    latest = getattr(series, "latest", None) if on_branch else None
    return draw_trend(
        [_trend_point(point) for point in points],
        [_trend_change(change) for change in changes],
        series.metric.unit,
        latest.level if latest else None,
        markers=[TrendMarker(marker.point.position, marker.label) for marker in markers],
        limits=[TrendLimit(bound.position, bound.minimum, bound.maximum) for bound in bounds],
        height=height,
        baseline=baseline,
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
    markers = environment_markers(points)
    return theme.figure_json(draw_series(series, points, changes, bounds, markers, height=320))


@dataclass(frozen=True, slots=True)
class EnvironmentMarker:
    """What changed beside the code before a point: in a word for the chart, and in full."""

    point: Point
    label: str
    text: str


def environment_markers(points: Sequence[Point]) -> list[EnvironmentMarker]:
    """A marker for each point whose run had another environment than the run before it, oldest first."""
    environments = RunEnvironments()
    environments.read_runs(point.run_id for point in points)
    compared = (
        (after, compare_environments(environments.of_run(before.run_id), environments.of_run(after.run_id)))
        for before, after in pairwise(points)
    )
    return [
        EnvironmentMarker(point, _marker_label(differences), labels.describe_differences(differences))
        for point, differences in compared
        if differences
    ]


def _marker_label(differences: Sequence[Difference]) -> str:
    """`torch`, or `driver + 3` where more changed: a chart has room for one word."""
    first, *others = differences
    return f"{first.label} + {len(others)}" if others else first.label


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
