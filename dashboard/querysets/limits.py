"""The limits that runs crossed: which are crossed now, and which run kept or crossed them."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, QuerySet

from dashboard.models import Project, Regression, Series, SeriesLatest
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.querysets.regressions import ONGOING


def currently_crossed() -> QuerySet[SeriesLatest]:
    """The latest states of series whose newest run crossed its limit, with what a line about them names.

    Read from the few latest states that have a limit at all; superseded benchmark versions are left out.
    """
    newer_version = Series.objects.filter(
        configuration__case=OuterRef("series__configuration__case"),
        configuration__pool=OuterRef("series__configuration__pool"),
        configuration__quick=OuterRef("series__configuration__quick"),
        metric=OuterRef("series__metric"),
        phase=OuterRef("series__phase"),
        configuration__version__gt=OuterRef("series__configuration__version"),
    )
    return (
        SeriesLatest.objects.filter(~Exists(newer_version), limit__isnull=False)
        .filter(limit__crossed=True, limit__tainted=False)
        .select_related(
            "limit",
            "series__metric",
            "series__configuration__case__project",
            "series__configuration__pool",
            "run__commit",
        )
        .defer("recent", "series__configuration__case__project__manifest", "run__fingerprint")
        .order_by("-updated_at", "pk")
    )


def _build_crossed_of_project(most: int) -> QuerySet[SeriesLatest]:
    return currently_crossed().filter(series__configuration__case__project=Parameter("project"))[:most]


# The newest so many of a project.
CROSSED_OF_PROJECT = CompiledQuery(_build_crossed_of_project)


def crossed_without_regression(projects: QuerySet[Project]) -> QuerySet[SeriesLatest]:
    """Those of these projects that no open regression names already."""
    own = Regression.objects.filter(ONGOING, series=OuterRef("series"))
    reporting = Regression.objects.filter(ONGOING, limits__series=OuterRef("series"))
    crossed = currently_crossed().filter(series__configuration__case__project__in=projects)
    return crossed.filter(~Exists(own), ~Exists(reporting))
