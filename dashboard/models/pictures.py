from __future__ import annotations

from typing import cast

from django.conf import settings
from django.db import models

from dashboard.models.projects import Project
from dashboard.models.regressions import Regression
from dashboard.models.runs import Run
from dashboard.models.series import Series


class PictureLink(models.Model):
    """Lets whoever knows its address see the picture of one series, regression or run, until it is revoked.

    Its address is signed; nothing that opens it is kept.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="picture_links")
    series = models.ForeignKey(Series, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    regression = models.ForeignKey(
        Regression, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "picture link"
        ordering = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return f"picture link {self.pk}"

    @property
    def subject(self) -> Series | Regression | Run:
        """What its picture is of: one of the three is always set."""
        return cast("Series | Regression | Run", self.series or self.regression or self.run)
