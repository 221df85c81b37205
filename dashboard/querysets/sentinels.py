"""Machines that measured the same code differently of late, as their sentinels say."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from dashboard.models import Project, Sentinel
from dashboard.querysets.composed import ComposedQuery, Given

MOVED_WITHIN = timedelta(days=14)


def recently_moved_sentinels(project: Project) -> list[Sentinel]:
    """The sentinels with a step of the last days, newest first."""
    return _RECENTLY_MOVED.read_rows(project=project.pk, since=timezone.now() - MOVED_WITHIN)


def _compose_recently_moved() -> QuerySet[Sentinel]:
    rows = Sentinel.objects.filter(
        configuration__case__project=Given("project"), ratio__isnull=False, moved_before__gt=Given("since")
    )
    related = rows.select_related("configuration__case", "machine", "commit")
    return related.order_by("-moved_before", "pk")


_RECENTLY_MOVED = ComposedQuery(_compose_recently_moved)
