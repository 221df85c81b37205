"""What a sentinel's run measured: points of the sentinel, none of its commit's series."""

from __future__ import annotations

from django.utils import timezone
from paceline.document import Document

from dashboard.ingest.series import metrics_of
from dashboard.models import Run, Sentinel, SentinelPoint


def store(run: Run, found: Document) -> None:
    """Store a point for each noisy headline metric; none where another commit has been pinned since."""
    sentinel = Sentinel.objects.filter(
        case=run.case_id, machine=run.machine_id, version=run.version, quick=run.quick, commit=run.commit_id
    ).first()
    if sentinel is None:
        return
    kept = tuple(one for one in found.metrics if one.headline and not one.exact and not one.phase)
    metrics = metrics_of(kept)
    SentinelPoint.objects.bulk_create(
        SentinelPoint(
            sentinel=sentinel,
            run=run,
            metric=metrics[one.name, one.better],
            value=one.value,
            samples=one.samples,
            tainted=found.taints(one.kind),
            measured_at=timezone.now(),
        )
        for one in kept
    )
