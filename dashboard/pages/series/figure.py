"""The charts of a series and of a regression's step, from rows and from what is said of them."""

from __future__ import annotations

from collections.abc import Sequence

from django.urls import reverse

from dashboard.charts import theme
from dashboard.charts.limit_lines import TrendLimit
from dashboard.charts.trend import Trend, TrendLine, TrendPoint, draw_trend
from dashboard.charts.trend_marks import TrendChange, TrendFailure, TrendMarker, TrendStep
from dashboard.models import Change, Regression
from dashboard.pages.series.trend import OverlaidLine, SeriesTrend, environment_markers, narrow_row
from dashboard.querysets import series as series_queries
from dashboard.querysets import trends
from dashboard.querysets.series_points import SeriesPoint, newest_points
from dashboard.querysets.trends import CommitEvent
from dashboard.sentences.formatting.change_sizes import format_change_size, is_worse, shown_step
from dashboard.sentences.series.trends import failure_text, taint_reason

POINTS_AROUND = 30
STEP_HEIGHT = 320


def draw_series(trend: SeriesTrend) -> theme.Figure:
    """Of a trend with at least one run."""
    # Only the project's branch has levels.
    latest = getattr(trend.series, "latest", None) if trend.is_on_project_branch else None
    return draw_trend(
        Trend(
            points=[trend_point(point) for point in trend.details_of(trend.drawn)],
            unit=trend.series.metric.unit,
            changes=[trend_change(change) for change in trend.changes if not change.is_move],
            level=latest.level if latest else None,
            markers=[
                *(TrendMarker(marker.position, marker.label) for marker in trend.markers),
                *tag_markers(trend.events),
            ],
            failures=[trend_failure(event) for event in trend.events if event.run],
            limits=[TrendLimit(limit.position, limit.minimum, limit.maximum) for limit in trend.limits],
            baseline=trend.baseline.trend_line,
            lines=[_drawn_line(trend, line) for line in trend.lines if line.drawn],
            reference=trend.reference.value,
            by_date=trend.query.by_date,
            thinned=len(trend.drawn) < len(trend.shown),
        )
    )


def _drawn_line(trend: SeriesTrend, line: OverlaidLine) -> TrendLine:
    points = (trend.points.get((line.series.pk, run)) for _, run, _ in line.drawn)
    return TrendLine(line.name, [trend_point(point) for point in points if point], line.reference)


def draw_regression_step(regression: Regression) -> theme.Figure | None:
    """The series of a regression with its own step well inside; other steps are grey. None without points."""
    series = regression.series
    series.configuration.case.project = regression.project
    until = regression.first_bad.position + POINTS_AROUND
    points = newest_points(series, 2 * POINTS_AROUND, until)
    if not points:
        return None
    span = (points[0].position, points[-1].position)
    changes = series_queries.changes_between(series, *span)
    latest = getattr(series, "latest", None)
    limits = trends.limit_rows(series, *span) if getattr(regression, "is_limited", True) else []
    return draw_trend(
        Trend(
            points=[trend_point(point) for point in points],
            unit=series.metric.unit,
            changes=[trend_change(change, regression) for change in changes if not change.is_move],
            level=latest.level if latest else None,
            markers=[
                TrendMarker(marker.position, marker.label)
                for marker in environment_markers([narrow_row(point) for point in points])
            ],
            limits=[TrendLimit(limit.position, limit.minimum, limit.maximum) for limit in limits],
            step=TrendStep(regression.last_good.position, regression.first_bad.position),
        ),
        STEP_HEIGHT,
    )


def trend_point(point: SeriesPoint) -> TrendPoint:
    commit = point.commit
    return TrendPoint(
        position=point.position,
        value=point.value,
        low=point.low,
        high=point.high,
        samples=point.samples,
        tainted=point.tainted,
        commit=commit.short,
        subject=commit.subject,
        url=point.run_address,
        at=commit.committed_at,
        doubt=taint_reason(point.warning_codes) if point.tainted else "",
    )


def trend_change(change: Change, regression: Regression | None = None) -> TrendChange:
    """With the size that its regression tells. `regression`: whose own changes alone are coloured."""
    own = regression is not None and change.regression_id == regression.pk
    return TrendChange(
        position=change.position,
        before=change.before,
        after=change.after,
        size=format_change_size(shown_step(change)),
        worse=is_worse(change),
        url=change.regression.get_absolute_url() if change.regression and not own else "",
        muted=regression is not None and not own,
    )


def tag_markers(events: Sequence[CommitEvent]) -> list[TrendMarker]:
    """One for each commit that has tags, also where several of its runs failed."""
    tagged = {event.position: ", ".join(event.tags) for event in events if event.tags}
    return [TrendMarker(position, text, is_tag=True) for position, text in tagged.items()]


def trend_failure(event: CommitEvent) -> TrendFailure:
    """Of an event that names a failed run."""
    return TrendFailure(
        position=event.position,
        reason=failure_text(event.run or 0, event.failure, event.reason),
        commit=f"{event.hash[:10]}  {event.subject}",
        url=reverse("run", args=[event.run]),
        at=event.committed_at,
    )
