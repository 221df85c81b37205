from __future__ import annotations

from django.conf import settings
from django.db import models

from dashboard.models.access import ApiToken
from dashboard.models.runs import Run


class PostedDocument(models.Model):
    """That a run was measured elsewhere, and its document posted: by whom, and what they call the machine."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True, related_name="posted")
    # As it was sent: the same twice is one run.
    sha256 = models.CharField(max_length=64)
    machine = models.CharField(max_length=40)
    measured_at = models.DateTimeField()
    posted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    token = models.ForeignKey(ApiToken, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")

    def __str__(self) -> str:
        return f"of {self.machine}"
