"""What a sentinel's run measured: points of the sentinel, none of its commit's series."""

from __future__ import annotations

from django.utils import timezone
from paceline.document import Document

from dashboard.ingest.series import get_or_create_metrics
from dashboard.models import Run, Sentinel, SentinelPoint


def store_sentinel_points(run: Run, document: Document) -> None:
    """Store a point for each noisy headline metric; none where another commit has been pinned since."""
    sentinel = Sentinel.objects.filter(
        configuration=run.configuration_id, machine=run.machine_id, commit=run.commit_id
    ).first()
    if sentinel is None:
        return
    noisy = tuple(
        value for value in document.metrics if value.headline and not value.exact and not value.phase
    )
    metrics = get_or_create_metrics(noisy)
    SentinelPoint.objects.bulk_create(
        SentinelPoint(
            sentinel=sentinel,
            run=run,
            metric=metrics[value.name, value.better],
            value=value.value,
            samples=value.samples,
            tainted=document.taints(value.kind),
            measured_at=timezone.now(),
        )
        for value in noisy
    )
