from __future__ import annotations

from django.db import models


class Throttle(models.Model):
    """How often somebody has lately done what is limited. Unlogged: empty after a crash of the database."""

    key = models.CharField(
        max_length=64, primary_key=True, help_text="A hash of what is limited, and of the visitor or account."
    )
    count = models.PositiveIntegerField(help_text="Requests of the window; or attempts without a success.")
    started_at = models.DateTimeField(help_text="When the window began; or the newest attempt.")
    free_at = models.DateTimeField(db_index=True, help_text="Nothing is refused any more from then on.")

    def __str__(self) -> str:
        return f"{self.key[:8]}: {self.count}"
