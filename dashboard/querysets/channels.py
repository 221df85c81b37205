"""Channels as their page lists them."""

from __future__ import annotations

from django.db.models import Count, Max, Q, QuerySet

from dashboard.models import Channel, Delivery, Project


def listed_channels(project: Project) -> QuerySet[Channel]:
    """With their rules, how many of their messages are in each state, and when the last one arrived."""
    counts = {str(state): Count("deliveries", filter=Q(deliveries__state=state)) for state in Delivery.State}
    rows = Channel.objects.filter(project=project).select_related("project").prefetch_related("rules")
    return rows.annotate(**counts, last_delivered_at=Max("deliveries__delivered_at")).order_by("pk")
