"""One series: its trend over the commits of the branch, or its phases, with the numbers beside it."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from dashboard.charts import theme
from dashboard.charts.trend import MOST_MARKED
from dashboard.models import Project, Series
from dashboard.pages.experiments.links import series_fields
from dashboard.pages.link_previews import preview_of
from dashboard.pages.series.baseline import baseline_context
from dashboard.pages.series.controls import control_context, part_text
from dashboard.pages.series.effect import describe_effect
from dashboard.pages.series.figure import draw_series
from dashboard.pages.series.phases import PhaseTable, draw_phases, has_phases, phase_rows, read_phases
from dashboard.pages.series.trend import SeriesTrend, read_series_trend
from dashboard.policy.project_policy import project_policy
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.querysets import series as series_queries
from dashboard.querysets.alarm_tallies import alarm_precision, with_alarm_counts
from dashboard.querysets.noise import with_noise_facts
from dashboard.querysets.regressions import learning_lost_at
from dashboard.retention import kept_days
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.english import upper_first
from dashboard.sentences.formatting.metric_labels import metric_description, metric_sort_key, series_label
from dashboard.sentences.regressions.costs import precision_sentence
from dashboard.sentences.series.limits import format_bounds
from dashboard.sentences.series.trends import (
    dropped_points_sentence,
    failure_text,
    taint_reason,
    thinned_sentence,
)


def _series_rows() -> QuerySet[Series]:
    return series_queries.with_newest_origin(series_queries.series_with_related())


SERIES_FOR_PAGE = CompiledQuery(
    lambda: with_noise_facts(with_alarm_counts(_series_rows())).filter(pk=Parameter("pk"))
)


@require_safe
def series_page(request: HttpRequest, pk: int) -> HttpResponse:
    series = next(iter(SERIES_FOR_PAGE.read_rows(pk=pk)), None)
    if series is None:
        raise Http404("There is no series of that number.")
    trend = read_series_trend(request, series)
    project = series.case.project
    newest = trend.details
    siblings = sorted(
        (other for other in trend.related if other.configuration_id == series.configuration_id),
        key=lambda sibling: metric_sort_key(sibling.metric.name, sibling.phase),
    )
    newest_limit = trend.limits[-1] if trend.limits else None
    unit = series.metric.unit
    against = baseline_context(series, trend.baseline, newest, trend.branch)
    context = {
        "series": series,
        "name": series_label(series),
        "preview": preview_of(series),
        "project": project,
        "meaning": metric_description(series.metric.name),
        **against,
        **chart_context(trend),
        **points_context(request, trend),
        **control_context(request, trend, against["branches"]),
        "changes": trend.changes[::-1],
        "no_gain": learning_lost_at(trend.changes),
        "precision": precision_sentence(alarm_precision(series)),
        "effect": describe_effect(series, trend),
        "dropped_points": describe_dropped_points(series, project),
        "limit": newest_limit,
        "bound": format_bounds(newest_limit.minimum, newest_limit.maximum, unit) if newest_limit else "",
        "crossed": {bound.run for bound in trend.limits if bound.crossed},
        "markers": trend.markers[::-1],
        "failures": [_describe_failure(event) for event in trend.events[::-1] if event.run],
        "headlines": [sibling for sibling in siblings if sibling.headline],
        "others": [sibling for sibling in siblings if not sibling.headline],
    }
    return render(request, "series/series.html", context)


def describe_dropped_points(series: Series, project: Project) -> str:
    """Empty where the project keeps all points, or has lost none of this series."""
    (days,) = (kept.days for kept in kept_days(project) if kept.kind == "points")
    if not days or not series_queries.has_dropped_points(series):
        return ""
    return dropped_points_sentence(days, project_policy(project).points_every)


@require_safe
def series_part(request: HttpRequest, pk: int) -> JsonResponse:
    """What a part of the chart shows, for the script that has zoomed: the figure, and the table's section."""
    series = get_object_or_404(_series_rows(), pk=pk)
    trend = read_series_trend(request, series)
    context = {"series": series, "project": series.case.project, **chart_context(trend)}
    context |= points_context(request, trend)
    table = render_to_string("series/points.html", context, request)
    answer = {"figure": context["figure"], "points": table, "thinned": context["thinned"]}
    return JsonResponse({**answer, "part": part_text(trend)})


def chart_context(trend: SeriesTrend) -> dict[str, Any]:
    """The figure, of the trend or of the phases, as JSON and as it is drawn; and what it leaves out."""
    if not trend.shown:
        return {"figure": "", "drawn": None, "thinned": "", "has_dots": False}
    has_stack = trend.query.by_phase and has_phases(trend.series, trend.related)
    table = read_phases(trend) if has_stack else None
    # Where all runs are tainted there is nothing to stack.
    if table is not None and table.runs:
        stacked = draw_phases(trend, table)
        return {
            "figure": theme.figure_json(stacked),
            "drawn": stacked,
            "thinned": thinned_sentence(len(table.runs), sum(not row.tainted for row in trend.shown)),
            "stack": phase_rows(table),
            "stack_ends": _stack_ends(trend, table),
        }
    drawn = draw_series(trend)
    return {
        "figure": theme.figure_json(drawn),
        "drawn": drawn,
        "thinned": thinned_sentence(len(trend.drawn), len(trend.shown)),
        "has_dots": len(trend.shown) <= MOST_MARKED,
    }


def _stack_ends(trend: SeriesTrend, table: PhaseTable) -> list[str]:
    """The first and the newest commit of the phases' table."""
    points = {point.run: point for point in trend.points.values()}
    ends = [points.get(table.runs[end].run) for end in (0, -1)]
    return [point.commit.short if point else "" for point in ends]


def points_context(request: HttpRequest, trend: SeriesTrend) -> dict[str, Any]:
    """The rows of the table, newest first."""
    series = trend.series
    beside = [(line, {position: value for position, _, value in line.rows}) for line in trend.lines]
    crossed = {bound.run for bound in trend.limits if bound.crossed}
    listed = [
        (row, trend.points[row.series, row.run])
        for row in trend.listed
        if (row.series, row.run) in trend.points
    ]
    rows = [
        {
            "point": point,
            "is_own": row.branch == trend.branch,
            "change": _change_text(point.value, trend.reference.value),
            "beside": [
                (line.name, *_overlaid_texts(values.get(row.position), series.metric.unit, line.reference))
                if line.branch == row.branch
                else (line.name, numbers.DASH, "")
                for line, values in beside
            ],
            "doubt": taint_reason(point.warning_codes) if point.tainted else "",
            "crossed": point.run in crossed,
        }
        for row, point in listed
    ]
    return {
        "rows": rows,
        "page": trend.listed,
        "points_shown": len(trend.shown),
        "all_tainted": all(row.tainted for row in trend.shown),
        "lines": trend.lines,
        "relative": trend.reference if trend.reference.value is not None else None,
        "comparing": _comparing_fields(series) if len(trend.rows) > 1 else None,
        "is_measured_here": series_queries.is_measured_here(series),
        "request": request,
    }


def _comparing_fields(series: Series) -> dict[str, str]:
    """What names the case for the experiment, and for the comparison of what is stored."""
    return {**series_fields(series), "windows": "quick" if series.quick else "standard"}


def _change_text(value: float, reference: float | None) -> str:
    return "" if reference is None else numbers.format_percent_change(value / reference)


def _overlaid_texts(value: float | None, unit: str, reference: float | None) -> tuple[str, str]:
    """The value and its change, of which the latter is empty where values are absolute."""
    if value is None:
        return numbers.DASH, ""
    return numbers.format_quantity(value, unit), _change_text(value, reference)


def _describe_failure(event: Any) -> dict[str, Any]:
    text = failure_text(event.run, event.failure, event.reason)
    return {
        "run": event.run,
        "text": upper_first(text),
        "commit": event.hash[:10],
        "subject": event.subject,
    }
