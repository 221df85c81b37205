"""Machines that measured the same code differently of late, as their sentinels say."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from dashboard.models import Project, Sentinel

MOVED_WITHIN = timedelta(days=14)


def recently_moved_sentinels(project: Project) -> list[Sentinel]:
    """The sentinels with a step of the last days, newest first."""
    rows = Sentinel.objects.filter(
        configuration__case__project=project,
        ratio__isnull=False,
        moved_before__gt=timezone.now() - MOVED_WITHIN,
    )
    return list(
        rows.select_related("configuration__case", "machine", "commit").order_by("-moved_before", "pk")
    )
