"""One series: its points, its changes, its siblings; and the latest states that overviews read."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Exists, F, OuterRef, QuerySet, Subquery, Window
from django.db.models.functions import RowNumber

from dashboard.models import Change, Point, Project, Run, Series, SeriesLatest
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.querysets.deferred_joins import compose_details
from dashboard.querysets.regressions import REGRESSION_DETAILS

# What the overview shows of a project: this metric, of so many cases.
OVERVIEW_METRIC = "throughput"
OVERVIEW_CASES = 4


def series_with_related() -> QuerySet[Series]:
    return Series.objects.select_related(
        "configuration__case__project", "configuration__pool", "metric", "latest"
    )


def with_newest_origin(rows: QuerySet[Series]) -> QuerySet[Series]:
    """Each with the `newest_origin` of its runs; None where it has no point."""
    return rows.annotate(newest_origin=F("latest__run__origin"))


def is_measured_here(series: Series) -> bool:
    """Whether a host of this site can measure it again: a series with its newest origin."""
    origin = getattr(series, "newest_origin", None)
    return series.case.project.is_measurable and origin in (None, Run.Origin.MEASURED)


SERIES_OF_KEYS = compose_details(series_with_related)
_OF_KEY = CompiledQuery(lambda: series_with_related().filter(pk=Parameter("pk")))


def find_series(pk: int) -> Series | None:
    return next(iter(_OF_KEY.read_rows(pk=pk)), None)


def has_dropped_points(series: Series) -> bool:
    """Whether a run since its first point, which always stays, has lost its own with age."""
    first = Point.objects.filter(series=series).order_by("position").values("position")[:1]
    thinned = Run.objects.filter(
        configuration=series.configuration_id, points_thinned=True, commit__position__gt=Subquery(first)
    )
    return thinned.filter(~Exists(Point.objects.filter(series=series, run=OuterRef("pk")))).exists()


def points_with_related() -> QuerySet[Point]:
    """With what a line about a point names of its run and commit."""
    return Point.objects.select_related("run__commit").only(
        "series", "position", "value", "low", "high", "samples", "tainted", "run__warning_codes",
        "run__commit__hash", "run__commit__committed_at",
    )  # fmt: skip


POINTS_OF_KEYS = compose_details(points_with_related)
CHANGES_OF_KEYS = compose_details(lambda: Change.objects.select_related("first_bad", "last_good"))


def changes_between(series: Series, least: int, most: int) -> list[Change]:
    """The changes between two positions, both included, oldest first."""
    return _CHANGES_BETWEEN.read_rows(series=series.pk, least=least, most=most)


def _build_changes() -> QuerySet[Change]:
    span = (Parameter("least"), Parameter("most"))
    rows = Change.objects.filter(series=Parameter("series"), position__range=span).order_by("position")
    commits = (f"regression__{name}" for name in ("first_bad", "last_good", "culprit"))
    related = rows.select_related("first_bad", "last_good", "series__metric", *commits)
    return related.defer(*(f"regression__{name}" for name in REGRESSION_DETAILS))


_CHANGES_BETWEEN = CompiledQuery(_build_changes)


def latest_for_overview(projects: Iterable[Project]) -> list[SeriesLatest]:
    """For each project the few cases that were measured last, by the metric that every case has."""
    keys = [project.pk for project in projects]
    return _LATEST_FOR_OVERVIEW.read_rows(projects=keys) if keys else []


def _build_latest_for_overview() -> QuerySet[SeriesLatest]:
    return (
        SeriesLatest.objects.filter(
            series__configuration__case__project__in_array=Parameter("projects"),
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


_LATEST_FOR_OVERVIEW = CompiledQuery(_build_latest_for_overview)
