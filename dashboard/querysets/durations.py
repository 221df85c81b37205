"""How long runs took: of the latest states alone, so that no history is read."""

from __future__ import annotations

from django.db.models import DurationField, ExpressionWrapper, F, QuerySet

from dashboard.models import Project, Run, SeriesLatest
from dashboard.querysets.series import OVERVIEW_METRIC


def newest_durations(projects: QuerySet[Project]) -> dict[str, float]:
    """Seconds from claim to end of the newest whole run of each case, by the case's name."""
    rows = SeriesLatest.objects.filter(
        series__configuration__case__project__in=projects,
        series__configuration__quick=False,
        series__metric__name=OVERVIEW_METRIC,
        series__phase="",
        run__origin=Run.Origin.MEASURED,
        run__claimed_at__isnull=False,
        run__finished_at__isnull=False,
    )
    took = ExpressionWrapper(F("run__finished_at") - F("run__claimed_at"), DurationField())
    found = rows.annotate(took=took).select_related("series__configuration__case").order_by("run")
    return {str(latest.series.case): latest.took.total_seconds() for latest in found}


def newest_duration(run: Run) -> float | None:
    """Seconds that the newest whole run of the same configuration took; None where none has ended."""
    rows = SeriesLatest.objects.filter(
        series__configuration=run.configuration_id,
        series__metric__name=OVERVIEW_METRIC,
        series__phase="",
        run__claimed_at__isnull=False,
        run__finished_at__isnull=False,
    )
    took = ExpressionWrapper(F("run__finished_at") - F("run__claimed_at"), DurationField())
    found = rows.annotate(took=took).values_list("took", flat=True).first()
    return found.total_seconds() if found is not None else None
