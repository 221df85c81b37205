from __future__ import annotations

from django.db import models

from dashboard.models.runs import Run
from dashboard.models.series import Series


class GuardResult(models.Model):
    """How one run stood to a guard of its manifest: what it learned, over all its seeds.

    Beside the point of the same run, or where a point would be: a quality that isn't known has none.
    """

    class State(models.TextChoices):
        KEPT = "kept"
        VIOLATED = "violated"
        # A process reported none; or one that is no finite number.
        MISSING = "missing"
        DIVERGED = "diverged"

    UNREPORTED = (State.MISSING, State.DIVERGED)

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="guard_results")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="guard_results")
    # The commit's position on its branch, as in the point.
    position = models.PositiveIntegerField()
    minimum = models.FloatField(null=True, blank=True)
    maximum = models.FloatField(null=True, blank=True)
    state = models.CharField(max_length=10, choices=State.choices)
    seeds = models.PositiveSmallIntegerField(help_text="So many seeds' values are its mean and its samples.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["series", "run"], name="guard_once_per_run")]
        indexes = [models.Index(fields=["series", "position"], name="guard_trend")]

    def __str__(self) -> str:
        return f"guard of series {self.series_id} {self.state} at {self.position}"
