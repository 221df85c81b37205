from __future__ import annotations

from collections.abc import Sequence

from django.contrib.postgres.fields import ArrayField
from django.db import models

from dashboard.metric_scale import MetricScale
from dashboard.models.configurations import Configuration, Configured
from dashboard.models.runs import Run
from dashboard.page_addresses import page_address


class Metric(MetricScale, models.Model):
    """Name, unit, which direction is better, and kind."""

    class Better(models.TextChoices):
        LOWER = "lower"
        HIGHER = "higher"

    class Kind(models.TextChoices):
        TIME = "time"
        RATE = "rate"
        MEMORY = "memory"
        UTILIZATION = "utilization"
        COUNTER = "counter"
        QUALITY = "quality"

    name = models.CharField(max_length=100)
    unit = models.CharField(max_length=30)
    better = models.CharField(max_length=10, choices=Better.choices)
    kind = models.CharField(max_length=20, choices=Kind.choices)

    class Meta:
        constraints = [
            # Which way a quality or a gauge is better, each manifest says for itself; unit and kind follow
            # from the name.
            models.UniqueConstraint(fields=["name", "better"], name="metric_once")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_counted(self) -> bool:
        """True for what the counting repetition finds, which isn't timed.

        What the measured code counts itself is of the timed window.
        """
        counter = self.kind == Metric.Kind.COUNTER and not self.name.startswith("count.")
        return counter or self.name == "phase_memory"


class Series(Configured):
    """Configuration x metric x phase: what a trend line shows."""

    configuration = models.ForeignKey(Configuration, on_delete=models.CASCADE, related_name="series")
    metric = models.ForeignKey(Metric, on_delete=models.PROTECT, related_name="series")
    phase = models.CharField(
        max_length=200, blank=True, help_text="Path of the phase; empty: the whole step."
    )
    exact = models.BooleanField(default=False, help_text="As its newest document says.")
    headline = models.BooleanField(default=False, help_text="May raise a suspicion.")
    guarded = models.BooleanField(
        default=False,
        help_text="A quality with a guard in its manifest: it may raise a suspicion as well.",
    )

    class Meta:
        verbose_name_plural = "series"
        constraints = [
            models.UniqueConstraint(fields=["configuration", "metric", "phase"], name="series_identity")
        ]

    def __str__(self) -> str:
        return f"{self.metric} {self.phase}".strip()

    def get_absolute_url(self) -> str:
        return page_address("series", self.pk)


class Point(models.Model):
    """One run's value in a series, with its samples and its doubt."""

    # Without indexes of their own: `point_trend` begins with the series, the unique one with the run.
    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="points", db_index=False)
    # The commit's position on its branch, copied here: points are read by (series, position) alone.
    position = models.PositiveIntegerField()
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="points", db_index=False)
    value = models.FloatField()
    low = models.FloatField(null=True, blank=True)
    high = models.FloatField(null=True, blank=True)
    samples = ArrayField(models.FloatField(), default=list, blank=True)
    tainted = models.BooleanField(default=False)

    class Meta:
        # The run first: what a run stores lies together at the index' end, however many series there are.
        constraints = [models.UniqueConstraint(fields=["run", "series"], name="point_once_per_run")]
        indexes = [
            # Covering: a trend is read from the index alone.
            models.Index(fields=["series", "position"], include=["value", "run"], name="point_trend")
        ]

    def __str__(self) -> str:
        return f"{self.value} at {self.position}"


class SeriesLatest(models.Model):
    """The latest state of a series: what overviews read, so that they never read points."""

    series = models.OneToOneField(Series, primary_key=True, on_delete=models.CASCADE, related_name="latest")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    position = models.PositiveIntegerField()
    value = models.FloatField()
    # The newest values (oldest first, 30 at most): a sparkline without a read of points.
    recent = ArrayField(models.FloatField(), default=list, blank=True)
    # Where each of these values was measured: grids and heat maps read no points.
    recent_positions = ArrayField(models.PositiveIntegerField(), default=list, blank=True)
    recent_machines = ArrayField(
        models.BigIntegerField(null=True),
        default=list,
        blank=True,
        help_text="The machine of each; null where it is kept out of judgement, or no machine is known.",
    )
    current_value = models.FloatField(
        null=True, blank=True, help_text="The median of its five newest untainted values."
    )
    base_value = models.FloatField(
        null=True,
        blank=True,
        help_text="The same as it was 30 days before its newest commit; of headline series alone.",
    )
    base_position = models.PositiveIntegerField(
        null=True, blank=True, help_text="Of the last commit before those 30 days that was measured."
    )
    level = models.FloatField(null=True, blank=True, help_text="The current level, once judged.")
    limit = models.ForeignKey(
        "dashboard.Limit",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
        help_text="How the newest run stood to its limit.",
    )
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name_plural = "latest states of series"
        # Few series have a limit: what stands crossed is found without a look at the others.
        indexes = [
            models.Index(fields=["limit"], condition=models.Q(limit__isnull=False), name="latest_limited")
        ]

    def __str__(self) -> str:
        return f"latest of series {self.pk}"

    @property
    def judged_values(self) -> list[float]:
        """Those of `recent` that aren't kept out of judgement."""
        tainted = find_tainted(self.recent_machines, self.current_value)
        return [value for value, left_out in zip(self.recent, tainted, strict=False) if not left_out]

    @property
    def shown_value(self) -> float:
        """The newest of them; where all are tainted, the newest value."""
        judged = self.judged_values
        return judged[-1] if judged else self.value

    @property
    def is_tainted(self) -> bool:
        """Whether all its newest values are."""
        return self.current_value is None


def find_tainted(machines: Sequence[int | None], current_value: float | None) -> list[bool]:
    """Which of a series' newest values are kept out of judgement, by the machine of each.

    Imported and posted results have pools of their own and no machine: of theirs it is only known whether any
    is judged.
    """
    absence_taints = current_value is None or any(machine is not None for machine in machines)
    return [absence_taints and machine is None for machine in machines]
