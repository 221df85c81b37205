"""The limits that runs crossed: what stands crossed now, and how each run stood."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q, QuerySet

from dashboard.models import Limit, Regression, Run, Series, SeriesLatest
from dashboard.querysets.regressions import STANDING


def currently_crossed() -> QuerySet[SeriesLatest]:
    """The latest states of series whose newest run crossed its limit, with what a line about them names.

    Read from the few latest states that have a limit at all; superseded benchmark versions are left out.
    """
    newer_version = Series.objects.filter(
        case=OuterRef("series__case"),
        pool=OuterRef("series__pool"),
        quick=OuterRef("series__quick"),
        metric=OuterRef("series__metric"),
        phase=OuterRef("series__phase"),
        version__gt=OuterRef("series__version"),
    )
    return (
        SeriesLatest.objects.filter(~Exists(newer_version), limit__isnull=False)
        .filter(limit__crossed=True, limit__tainted=False)
        .select_related("limit", "series__metric", "series__case__project", "series__pool", "run__commit")
        .defer("recent", "series__case__project__manifest", "run__fingerprint")
        .order_by("-updated_at", "pk")
    )


def crossed_without_regression() -> QuerySet[SeriesLatest]:
    """Those of them that no open regression tells already."""
    own = Regression.objects.filter(STANDING, series=OuterRef("series"))
    crossed = {
        "limits__series": OuterRef(OuterRef("series")),
        "limits__crossed": True,
        "limits__tainted": False,
    }
    crossing = Run.objects.filter(**crossed).values("commit")
    # A commit has one regression: it tells a limit that was crossed there, whatever else it is about.
    of_commit = Regression.objects.filter(
        STANDING, Q(first_bad__in=crossing) | Q(changes__first_bad__in=crossing)
    )
    return currently_crossed().filter(~Exists(own), ~Exists(of_commit.exclude(limit="")))


def limits_between(series: Series, least: int, most: int) -> list[Limit]:
    """How runs between two positions stood to the series' limit, on the project's branch, oldest first."""
    branch = series.case.project.branch
    rows = Limit.objects.filter(series=series, position__range=(least, most), run__commit__branch=branch)
    return list(rows.order_by("position", "run_id"))
