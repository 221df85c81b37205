from __future__ import annotations

from django.db import models


class Revision(models.Model):
    """That something which pages show was written: each statement leaves a random stamp.

    All stamps that a reader sees, combined, are the revision of what it sees. Triggers write them, on all
    tables that pages show (dashboard/page_cache/database_triggers.py).
    """

    # Not a key: a row of a project that is being deleted still says so.
    project_id = models.BigIntegerField(
        null=True, help_text="What was written is shown on this project's pages alone; empty: on any."
    )
    stamp = models.BigIntegerField()

    def __str__(self) -> str:
        return f"stamp {self.pk}"
