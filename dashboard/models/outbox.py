from __future__ import annotations

from django.db import models


class OutboxMessage(models.Model):
    """A message to the service's workers that no other row speaks of: kept until its task was done."""

    task = models.CharField(max_length=60, help_text="The task's name, as the queue knows it.")
    arguments = models.JSONField(default=list)
    send_again_at = models.DateTimeField(help_text="Unless it was done by then.")

    class Meta:
        indexes = [models.Index(fields=["send_again_at"], name="outbox_due")]

    def __str__(self) -> str:
        return f"{self.task}({', '.join(map(str, self.arguments))})"
