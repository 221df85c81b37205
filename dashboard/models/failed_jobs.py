from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import MD5, Cast


class FailedJob(models.Model):
    """A task that fails for a reason nobody foresaw: tried again after growing pauses, then set aside."""

    task = models.CharField(max_length=60, help_text="The task's name, as the queue knows it.")
    arguments = models.JSONField(default=list)
    failures = models.PositiveSmallIntegerField(default=0)
    # The newest last.
    errors = ArrayField(models.CharField(max_length=500), default=list)
    first_failed_at = models.DateTimeField(auto_now_add=True)
    next_try_at = models.DateTimeField(null=True, help_text="NULL: set aside until somebody asks for it.")

    class Meta:
        constraints = [
            # Of the arguments a digest: an index holds no text of any length.
            models.UniqueConstraint(
                "task", MD5(Cast("arguments", models.TextField())), name="failed_job_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.task}({', '.join(map(str, self.arguments))})"
