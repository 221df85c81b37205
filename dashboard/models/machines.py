from __future__ import annotations

from django.db import models


class Pool(models.Model):
    """Machines that are alike, so that their results may be compared; a queue."""

    name = models.SlugField(max_length=60, unique=True)

    def __str__(self) -> str:
        return self.name


class Machine(models.Model):
    """A host that measures. Its fingerprint is the newest seen; each run keeps the one that it ran under."""

    name = models.CharField(max_length=120, unique=True)
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="machines")
    fingerprint = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class Heartbeat(models.Model):
    """When a part of the site that is no machine (scheduler, service worker) last said that it lives."""

    name = models.CharField(max_length=60, unique=True)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
