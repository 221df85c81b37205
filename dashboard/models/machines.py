from __future__ import annotations

from django.db import models

from dashboard.host_protocol import OLDEST_PROTOCOL
from dashboard.page_addresses import page_address


class Pool(models.Model):
    """Machines that are alike, so that their results may be compared; a queue."""

    name = models.SlugField(max_length=60, unique=True)

    def __str__(self) -> str:
        return self.name


class Machine(models.Model):
    """A host that measures. Its fingerprint is the newest seen; each run keeps the one that it ran under."""

    class State(models.TextChoices):
        ACTIVE = "active"
        PAUSED = "paused"
        # As paused, and its agent ends once it measures nothing.
        DRAINING = "draining"
        # Its token is gone; what it measured stays.
        RETIRED = "retired"

    name = models.CharField(max_length=120, unique=True)
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="machines")
    state = models.CharField(max_length=10, choices=State.choices, default=State.ACTIVE)
    fingerprint = models.JSONField(default=dict, blank=True)
    # SHA-256 of the token that it proves itself with; empty where it has none.
    token_hash = models.CharField(max_length=64, blank=True, default="", db_index=True)
    joined_at = models.DateTimeField(null=True, blank=True)
    agent_version = models.CharField(max_length=60, blank=True, default="")
    protocol = models.PositiveSmallIntegerField(null=True, blank=True)
    box = models.JSONField(
        null=True, blank=True, help_text="The box that it gives measured code, as its agent described it."
    )
    too_few_bytes = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="What is left on its disk, where that is too little to take work; empty: enough.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return page_address("machine", self.pk)

    @property
    def is_outdated(self) -> bool:
        """Its agent speaks a protocol that this site no longer does: it gets no work."""
        return self.protocol is not None and self.protocol < OLDEST_PROTOCOL


class JoinCode(models.Model):
    """Lets one host join, once, and for a quarter of an hour; its code is kept as a hash alone."""

    code_hash = models.CharField(max_length=64, unique=True)
    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="join_codes")
    # The only name that the host may have, which a machine may have already; empty for any new name.
    machine_name = models.CharField(max_length=120, blank=True, default="")
    made_by = models.CharField(max_length=150)
    made_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"for {self.machine_name or 'a machine'} of {self.pool}"


class Heartbeat(models.Model):
    """When a part of the site (scheduler, service, fetch worker) last said that it lives."""

    name = models.CharField(max_length=60, unique=True)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
