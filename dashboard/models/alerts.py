from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from dashboard.models.leases import Leased
from dashboard.models.projects import Project
from dashboard.models.regressions import Regression
from dashboard.secrets import EncryptedField


class Channel(models.Model):
    """Where alerts of a project go: a kind, an address and the least change that is worth a message."""

    class Kind(models.TextChoices):
        EMAIL = "email"
        WEBHOOK = "webhook"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="channels")
    kind = models.CharField(max_length=20, choices=Kind.choices)
    address = models.CharField(max_length=500, help_text="An e-mail address, or the URL of a webhook.")
    secret = EncryptedField(blank=True, default="", help_text="Signs a webhook's requests.")
    minimum_percent = models.FloatField(default=0, help_text="Smaller changes are not told here.")
    suspicions = models.BooleanField(
        default=False, help_text="Tell what is only suspected too, before it is confirmed."
    )
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "kind", "address"], name="channel_once_per_project")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.address}"


class Delivery(Leased):
    """One alert on its way to one channel: the delivery log."""

    class Event(models.TextChoices):
        OPENED = "opened"

    class State(models.TextChoices):
        PENDING = "pending"
        DELIVERED = "delivered"
        FAILED = "failed"

    MOST_ATTEMPTS = 12

    regression = models.ForeignKey(Regression, on_delete=models.CASCADE, related_name="deliveries")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=20, choices=Event.choices)
    state = models.CharField(max_length=20, choices=State.choices, default=State.PENDING)
    # One sentence per attempt that did not get through, oldest first.
    errors = ArrayField(models.TextField(), default=list, blank=True)
    next_attempt_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)
    delivered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "deliveries"
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(fields=["regression", "channel", "event"], name="delivery_once_per_event")
        ]
        indexes = [
            models.Index(fields=["next_attempt_at"], condition=models.Q(state="pending"), name="delivery_due")
        ]

    def __str__(self) -> str:
        return f"{self.event} of {self.regression} to {self.channel}"
