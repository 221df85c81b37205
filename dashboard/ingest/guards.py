"""How a run stands to the guards of its manifest, as rows beside its points."""

from __future__ import annotations

from paceline.document import Document

from dashboard.models import GuardResult, Run, Series


def store_guard_results(run: Run, document: Document) -> None:
    """Store a row for each guard on a quality that this run or an earlier one of its case reported.

    What no run has reported so far has no series: only the document says that it is missing.
    """
    if not document.guards:
        return
    known = {
        (series.metric.name, series.metric.better): series.pk
        for series in Series.objects.filter(
            configuration=run.configuration_id,
            phase="",
            metric__name__in=[f"quality.{guard.quality}" for guard in document.guards],
        ).select_related("metric")
    }
    GuardResult.objects.bulk_create(
        GuardResult(
            series_id=known[key],
            run=run,
            position=run.commit.position,
            minimum=guard.minimum,
            maximum=guard.maximum,
            state=guard.state,
            seeds=guard.seeds,
        )
        for guard in document.guards
        if (key := (f"quality.{guard.quality}", guard.better)) in known
    )
