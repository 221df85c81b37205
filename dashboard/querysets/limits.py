"""The limits that runs crossed: what stands crossed now, and where a crossing began."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Exists, OuterRef, QuerySet

from dashboard.models import Limit, Regression, Run, Series, SeriesLatest
from dashboard.querysets.regressions import OPEN


def standing() -> QuerySet[SeriesLatest]:
    """The latest states of series whose newest run crossed its limit, with what a line about them names.

    Read from the few latest states that have a limit at all; versions that were measured again are left out.
    """
    series = Series.objects.filter(
        case=OuterRef("series__case"),
        pool=OuterRef("series__pool"),
        quick=OuterRef("series__quick"),
        metric=OuterRef("series__metric"),
        phase=OuterRef("series__phase"),
        version__gt=OuterRef("series__version"),
    )
    return (
        SeriesLatest.objects.filter(~Exists(series), limit__isnull=False)
        .filter(limit__crossed=True, limit__tainted=False)
        .select_related("limit", "series__metric", "series__case__project", "series__pool", "run__commit")
        .defer("recent", "series__case__project__manifest", "run__fingerprint")
        .order_by("-updated_at", "pk")
    )


def untold() -> QuerySet[SeriesLatest]:
    """Those that no open regression tells already."""
    told = Regression.objects.filter(OPEN, series=OuterRef("series"))
    return standing().filter(~Exists(told))


def in_range(series: Series, least: int, most: int) -> list[Limit]:
    """How runs between two positions stood to the series' limit, on the project's branch, oldest first."""
    branch = series.case.project.branch
    found = Limit.objects.filter(
        series=series, position__range=(least, most), run__commit__branch=branch
    ).order_by("position", "run_id")
    return list(found)


@dataclass(frozen=True, slots=True)
class Crossing:
    """A limit that a run crossed, and the run before it, which kept to it; None where it had no limit."""

    limit: Limit
    kept: Limit | None


def begun_by(run: Run) -> list[Crossing]:
    """The limits that `run` crosses and the run before it on its branch didn't: what is told once.

    Tainted runs neither cross nor keep.
    """
    crossed = Limit.objects.filter(run=run, crossed=True, tainted=False).select_related(
        "series__metric", "series__case", "series__pool"
    )
    found = []
    for limit in crossed.order_by("series_id"):
        earlier = (
            Limit.objects.filter(
                series=limit.series_id,
                position__lt=limit.position,
                run__commit__branch=run.commit.branch,
                tainted=False,
            )
            .select_related("run__commit")
            .order_by("-position", "-run_id")
            .first()
        )
        if earlier is None or not earlier.crossed:
            found.append(Crossing(limit, earlier))
    return found
