"""One series: its points, its changes, its neighbours; and the latest states that overviews read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber

from dashboard.models import Case, Change, Metric, Point, Project, Run, Series, SeriesLatest

# What a project's line on the overview shows of each case.
GLANCE_METRIC = "throughput"
GLANCE_CASES = 4


def identified() -> QuerySet[Series]:
    return Series.objects.select_related("case__project", "metric", "pool", "latest")


def newest_points(series: Series, most: int, until: int | None = None) -> list[Point]:
    """The newest `most` points on the project's branch, oldest first; none after position `until`."""
    found = Point.objects.filter(series=series, run__commit__branch=series.case.project.branch)
    if until is not None:
        found = found.filter(position__lte=until)
    found = found.select_related("run__commit").only(
        "series", "position", "value", "low", "high", "samples", "tainted",
        "run__fingerprint",
        "run__commit__hash", "run__commit__subject", "run__commit__committed_at",
    )  # fmt: skip
    return list(found.order_by("-position", "-run_id")[:most])[::-1]


def changes(series: Series, least: int, most: int) -> list[Change]:
    """The changes between two positions, both included, oldest first."""
    found = Change.objects.filter(series=series, position__range=(least, most))
    return list(
        found.select_related("first_bad", "last_good", "regression", "series__metric").order_by("position")
    )


def siblings(series: Series) -> QuerySet[Series]:
    """The series of the same case, version and pool: what else was measured there."""
    return (
        Series.objects.filter(
            case=series.case_id, version=series.version, pool=series.pool_id, quick=series.quick
        )
        .select_related("metric")
        .order_by("-headline", "metric__name", "phase")
    )


def headlines(cases: Iterable[Case]) -> QuerySet[SeriesLatest]:
    """The latest state of every headline series of these cases."""
    return SeriesLatest.objects.filter(series__case__in=list(cases), series__headline=True).select_related(
        "series__metric", "series__pool"
    )


def glances(projects: Iterable[Project]) -> QuerySet[SeriesLatest]:
    """For each project the few cases that were measured last, by the metric that every case has."""
    return (
        SeriesLatest.objects.filter(
            series__case__project__in=list(projects), series__metric__name=GLANCE_METRIC, series__phase=""
        )
        .annotate(
            place=Window(
                RowNumber(),
                partition_by=F("series__case__project"),
                order_by=[F("updated_at").desc(), F("pk").desc()],
            )
        )
        .filter(place__lte=GLANCE_CASES)
        .select_related("series__metric", "series__case")
        .order_by("series__case__benchmark", "series__case__key")
    )


def of_run(run: int) -> QuerySet[Point]:
    """The points that a run left, with their series: what its metrics table links to."""
    return Point.objects.filter(run=run).select_related("series__metric")


@dataclass(frozen=True, slots=True)
class Before:
    """The run before another one of the same case, and what it counted: value by series."""

    run: Run
    values: dict[int, float]


def before(run: Run, points: list[Point]) -> Before | None:
    """What the same case measured at the commit before `run`'s on its branch; None where nothing did.

    Found through one series of the run, whose points are read by position: no history is walked.
    """
    if not points:
        return None
    known = next((point for point in points if point.series.metric.name == GLANCE_METRIC), points[0])
    found = (
        Point.objects.filter(
            series=known.series_id, position__lt=known.position, run__commit__branch=run.commit.branch
        )
        .select_related("run__commit")
        .only("series", "position", "run__commit__hash", "run__commit__subject")
        .order_by("-position", "-run_id")
        .first()
    )
    if found is None:
        return None
    counted = Point.objects.filter(run=found.run_id, series__metric__kind=Metric.Kind.COUNTER)
    return Before(found.run, dict(counted.values_list("series_id", "value")))
