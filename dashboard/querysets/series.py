"""One series: its points, its changes, its siblings; and the latest states that overviews read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import F, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from dashboard.models import Change, Metric, Point, Project, Run, Series, SeriesLatest
from dashboard.querysets.composed import ComposedQuery, Given

# What the overview shows of a project: this metric, of so many cases.
OVERVIEW_METRIC = "throughput"
OVERVIEW_CASES = 4


def series_with_related() -> QuerySet[Series]:
    return Series.objects.select_related(
        "configuration__case__project", "configuration__pool", "metric", "latest"
    )


def points_on_branch(series: Series, branch: str) -> QuerySet[Point]:
    """With what a line about a point names of its run and commit."""
    rows = Point.objects.filter(series=series, run__commit__branch=branch).select_related("run__commit")
    return rows.only(
        "series", "position", "value", "low", "high", "samples", "tainted", "run__warning_codes",
        "run__commit__hash", "run__commit__committed_at",
    )  # fmt: skip


def changes_between(series: Series, least: int, most: int) -> list[Change]:
    """The changes between two positions, both included, oldest first."""
    return _CHANGES_BETWEEN.read_rows(series=series.pk, least=least, most=most)


def _compose_changes() -> QuerySet[Change]:
    span = (Given("least"), Given("most"))
    rows = Change.objects.filter(series=Given("series"), position__range=span).order_by("position")
    commits = (f"regression__{name}" for name in ("first_bad", "last_good", "culprit"))
    return rows.select_related("first_bad", "last_good", "series__metric", *commits)


_CHANGES_BETWEEN = ComposedQuery(_compose_changes)


def latest_for_overview(projects: Iterable[Project]) -> list[SeriesLatest]:
    """For each project the few cases that were measured last, by the metric that every case has."""
    keys = [project.pk for project in projects]
    return _LATEST_FOR_OVERVIEW.read_rows(projects=keys) if keys else []


def _compose_latest_for_overview() -> QuerySet[SeriesLatest]:
    return (
        SeriesLatest.objects.filter(
            series__configuration__case__project__in_array=Given("projects"),
            series__metric__name=OVERVIEW_METRIC,
            series__phase="",
        )
        .annotate(
            rank=Window(
                RowNumber(),
                partition_by=F("series__configuration__case__project"),
                order_by=[F("updated_at").desc(), F("pk").desc()],
            )
        )
        .filter(rank__lte=OVERVIEW_CASES)
        .select_related("series__metric", "series__configuration__case")
        .order_by("series__configuration__case__benchmark", "series__configuration__case__key")
    )


_LATEST_FOR_OVERVIEW = ComposedQuery(_compose_latest_for_overview)


def points_of_run(run: int) -> QuerySet[Point]:
    """The points that a run left, with their series: what its metrics table links to."""
    return Point.objects.filter(run=run).select_related("series__metric")


@dataclass(frozen=True, slots=True)
class PreviousRun:
    """The run before another one of the same case, and by series what it counted and its headline points."""

    run: Run
    values: dict[int, float]
    headlines: dict[int, Point]


def previous_run(run: Run, points: list[Point]) -> PreviousRun | None:
    """What the same case measured at the commit before `run`'s on its branch; None where nothing did.

    Found through one series of the run, whose points are read by position: no history is walked.
    """
    if not points:
        return None
    earlier = _points_beside(run, points).filter(position__lt=_own_point(points).position)
    before = earlier.order_by("-position", "-run_id").first()
    if before is None:
        return None
    shown = Q(series__metric__kind=Metric.Kind.COUNTER) | Q(series__headline=True)
    rows = Point.objects.filter(shown, run=before.run_id).select_related("series__metric")
    found = {point.series_id: point for point in rows}
    return PreviousRun(
        before.run,
        {key: point.value for key, point in found.items() if point.series.metric.kind == Metric.Kind.COUNTER},
        {key: point for key, point in found.items() if point.series.headline},
    )


def next_run(run: Run, points: list[Point]) -> Run | None:
    """What the same case measured at the commit after `run`'s on its branch; found as the previous one is."""
    if not points:
        return None
    later = _points_beside(run, points).filter(position__gt=_own_point(points).position)
    after = later.order_by("position", "-run_id").first()
    return after.run if after else None


def _own_point(points: list[Point]) -> Point:
    return next((point for point in points if point.series.metric.name == OVERVIEW_METRIC), points[0])


def _points_beside(run: Run, points: list[Point]) -> QuerySet[Point]:
    """Of one series of the run, on its branch."""
    rows = Point.objects.filter(series=_own_point(points).series_id, run__commit__branch=run.commit.branch)
    return rows.select_related("run__commit").only(
        "series", "position", "run__commit__hash", "run__commit__subject"
    )
