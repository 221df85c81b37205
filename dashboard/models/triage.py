from __future__ import annotations

from django.conf import settings
from django.db import models

from dashboard.models.pull_requests import Check
from dashboard.models.regressions import Regression


class Triage(models.Model):
    """What a person said about a regression: an action, a comment, or both. The rows are its log."""

    class Action(models.TextChoices):
        ACKNOWLEDGE = "acknowledge"
        INTENDED = "intended"
        NOT_REAL = "not real"
        WONT_FIX = "won't fix"
        REOPEN = "reopen"
        COMMENT = "comment"

    regression = models.ForeignKey(Regression, on_delete=models.CASCADE, related_name="triages")
    # Empty once the account is gone: what was decided stays.
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    account = models.CharField(
        max_length=200, blank=True, help_text="Who has none on this site: the name of their forge's account."
    )
    merged_check = models.ForeignKey(
        Check,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="triages",
        help_text="The check that was triaged, before its head was merged.",
    )
    action = models.CharField(max_length=20, choices=Action.choices)
    comment = models.TextField(blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["at", "pk"]

    def __str__(self) -> str:
        return f"{self.action} of regression {self.regression_id}"
