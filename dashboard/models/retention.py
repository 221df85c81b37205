from __future__ import annotations

from django.db import models

from dashboard.models.projects import Project


class DroppedDetail(models.Model):
    """What runs of a project lost of one kind of detail on one day, since it was older than it is kept."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="dropped_detail")
    kind = models.CharField(max_length=20, help_text="logs, telemetry, profiles, documents or points.")
    day = models.DateField(help_text="In UTC.")
    runs = models.PositiveIntegerField(default=0)
    entries = models.PositiveBigIntegerField(
        default=0, help_text="So many logs, channels, profiles, documents or points."
    )
    size = models.PositiveBigIntegerField(default=0, help_text="Bytes that they took in their tables, about.")

    class Meta:
        verbose_name = "dropped detail"
        verbose_name_plural = "dropped detail"
        ordering = ["-day", "kind"]
        constraints = [
            models.UniqueConstraint(fields=["project", "day", "kind"], name="dropped_detail_once_a_day")
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.project}, {self.day:%Y-%m-%d}"
