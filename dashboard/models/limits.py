from __future__ import annotations

from django.db import models

from dashboard.models.regressions import Regression
from dashboard.models.runs import Run
from dashboard.models.series import Series


class Limit(models.Model):
    """How one run stood to the absolute bound that its manifest sets on a metric."""

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="limits")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="limits")
    # The commit's position on its branch, as in the point.
    position = models.PositiveIntegerField()
    minimum = models.FloatField(null=True, blank=True)
    maximum = models.FloatField(null=True, blank=True)
    value = models.FloatField()
    crossed = models.BooleanField()
    tainted = models.BooleanField(default=False, help_text="As the point: kept out of judgement.")
    # That reports the first run that crossed it.
    regression = models.ForeignKey(
        Regression, null=True, blank=True, on_delete=models.SET_NULL, related_name="limits"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["series", "run"], name="limit_once_per_run")]
        indexes = [models.Index(fields=["series", "position"], name="limit_trend")]

    def __str__(self) -> str:
        return f"limit of series {self.series_id} {'crossed' if self.crossed else 'kept'} at {self.position}"

    @property
    def violated_bound(self) -> float:
        """The bound that a crossed limit's value lies beyond."""
        bounds = [bound for bound in (self.minimum, self.maximum) if bound is not None]
        return min(bounds) if self.value < min(bounds) else max(bounds)
