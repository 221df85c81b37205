from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from dashboard.models.configurations import Configuration, Configured
from dashboard.models.machines import Machine
from dashboard.models.projects import Commit
from dashboard.models.runs import Run
from dashboard.models.series import Metric


class Sentinel(Configured):
    """One pinned commit of a configuration on one machine, measured again and again: what moves it is no
    commit.
    """

    # A new version measures something else, and so gets a sentinel of its own.
    configuration = models.ForeignKey(Configuration, on_delete=models.CASCADE, related_name="sentinels")
    machine = models.ForeignKey(Machine, on_delete=models.CASCADE, related_name="sentinels")
    commit = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="+")
    by_hand = models.BooleanField(default=False, help_text="Pinned by a person, not chosen.")
    created_at = models.DateTimeField(auto_now_add=True)

    # The newest step of its step time that two measurements have shown; empty: it stands where it began.
    moved_after = models.DateTimeField(
        null=True, blank=True, help_text="The last measurement before the step."
    )
    moved_before = models.DateTimeField(null=True, blank=True, help_text="The first one after it.")
    ratio = models.FloatField(null=True, blank=True, help_text="after / before")
    low = models.FloatField(null=True, blank=True, help_text="Of the ratio's interval.")
    high = models.FloatField(null=True, blank=True, help_text="Of the ratio's interval.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["configuration", "machine"], name="sentinel_once")]

    def __str__(self) -> str:
        return f"sentinel of {self.case} on {self.machine}"


class SentinelPoint(models.Model):
    """What one measurement of a sentinel says of one metric; apart from the points of its commit."""

    sentinel = models.ForeignKey(Sentinel, on_delete=models.CASCADE, related_name="points")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="sentinel_points")
    metric = models.ForeignKey(Metric, on_delete=models.PROTECT, related_name="+")
    value = models.FloatField()
    samples = ArrayField(models.FloatField(), default=list, blank=True)
    tainted = models.BooleanField(default=False)
    measured_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["sentinel", "metric", "run"], name="sentinel_point_once")
        ]
        indexes = [models.Index(fields=["sentinel", "metric", "measured_at"], name="sentinel_trend")]

    def __str__(self) -> str:
        return f"{self.value} of {self.metric} at {self.measured_at:%Y-%m-%d %H:%M}"
