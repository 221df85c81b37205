"""Machines that measured the same code differently of late, as their sentinels say."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import QuerySet

from dashboard.models import Sentinel
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter

MOVED_WITHIN = timedelta(days=14)


def _build_recently_moved(most: int) -> QuerySet[Sentinel]:
    rows = Sentinel.objects.filter(
        configuration__case__project=Parameter("project"),
        ratio__isnull=False,
        moved_before__gt=Parameter("since"),
    )
    related = rows.select_related("configuration__case", "machine", "commit")
    return related.order_by("-moved_before", "pk")[:most]


# The newest so many of a project with a step `since` then.
RECENTLY_MOVED = CompiledQuery(_build_recently_moved)
