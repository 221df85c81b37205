"""Which machines moved lately, as their sentinels say."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from dashboard.models import Project, Sentinel

LATELY = timedelta(days=14)


def moved_lately(project: Project) -> list[Sentinel]:
    """The sentinels with a step of the last days, newest first."""
    found = Sentinel.objects.filter(
        case__project=project, ratio__isnull=False, moved_before__gt=timezone.now() - LATELY
    )
    return list(found.select_related("case", "machine", "commit").order_by("-moved_before", "pk"))
