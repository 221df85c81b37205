from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.urls import reverse

from dashboard.models.projects import Commit, Project
from dashboard.models.series import Series


class Regression(models.Model):
    """The changes for the worse that one commit range caused, across series: one cause, one regression."""

    class State(models.TextChoices):
        SUSPECTED = "suspected"
        CONFIRMED = "confirmed"
        UNDECIDED = "undecided"
        REFUTED = "refuted"

    class Cause(models.TextChoices):
        CODE = "code"
        DEPENDENCY = "dependency"
        SYSTEM = "driver or system"
        MACHINE = "machine"
        DEFINITION = "benchmark definition"
        NOISE = "noise"

    class Triaged(models.TextChoices):
        OPEN = ""
        ACKNOWLEDGED = "acknowledged"
        INTENDED = "intended"
        NOT_REAL = "not real"
        WONT_FIX = "won't fix"

    # A person has decided: out of the open ones, told to nobody any more, not reopened by the same step.
    AWAY = (Triaged.INTENDED, Triaged.NOT_REAL, Triaged.WONT_FIX)

    # The usual place: said on the page and in webhooks, not in titles.
    HOST_ALONE = "on the host, which has no device to wait for"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="regressions")
    first_bad = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="+")
    last_good = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="+")
    state = models.CharField(max_length=20, choices=State.choices, default=State.SUSPECTED)
    # That of the change that speaks for all: a time's, unless memory moved more.
    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="regressions")
    before = models.FloatField()
    after = models.FloatField()
    ratio = models.FloatField(null=True, blank=True, help_text="after / before; empty where before is 0")
    low = models.FloatField(null=True, blank=True, help_text="Of the ratio's interval.")
    high = models.FloatField(null=True, blank=True, help_text="Of the ratio's interval.")
    phase = models.CharField(max_length=200, blank=True, help_text="The phase that explains most of it.")
    phase_share = models.FloatField(
        null=True, blank=True, help_text="How much of it that phase explains, 0 to 1."
    )
    place = models.CharField(
        max_length=300, blank=True, help_text="Host or device: where that phase lost its time."
    )
    # Likeliest first; each with function, file, line, phase, calls_before, calls_after (per step),
    # self_before, self_after (seconds per step), changed (was it touched by the commit range?).
    suspects = models.JSONField(default=list, blank=True)
    # Tensor operations, those of the phase first; each with operation, phase, count_before, count_after,
    # seconds_before, seconds_after (of the host, per step), share (of all growth, or of the loss).
    operations = models.JSONField(default=list, blank=True)
    limit = models.CharField(
        max_length=300, blank=True, help_text="Which limit of the manifest was crossed, in one sentence."
    )
    cause = models.CharField(
        max_length=30, choices=Cause.choices, blank=True, help_text="Its class; empty: not decided yet."
    )
    # What decided the class, a sentence each; the first one says what moved.
    cause_evidence = ArrayField(models.TextField(), default=list, blank=True)
    # First bad is then the merge by which it came.
    culprit = models.ForeignKey(
        Commit,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="Of a merge to blame: the commit of its branch.",
    )
    bisected = models.TextField(
        blank=True, help_text="What bisection says beside the commit: of merges, of commits that don't run."
    )
    proving = models.BooleanField(default=False, help_text="Confirmed, bisected and explained as runs end.")
    # What people made of it: as the newest row of its triage says. Judging again leaves it alone.
    triaged = models.CharField(
        max_length=20,
        choices=Triaged.choices,
        blank=True,
        default=Triaged.OPEN,
        help_text="Empty while it is open.",
    )
    triaged_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    triaged_at = models.DateTimeField(null=True, blank=True)
    opened_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    # A recovered regression closes itself; the commit that repaired it is named.
    recovered_by = models.ForeignKey(
        Commit, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    # Set when a later judgement no longer finds the step; kept, so that what was alerted can be looked up.
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-opened_at"]
        constraints = [
            models.UniqueConstraint(fields=["project", "first_bad"], name="regression_once_per_commit")
        ]

    def __str__(self) -> str:
        return f"regression {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("regression", args=[self.pk])

    @property
    def is_away(self) -> bool:
        """Has a person triaged it away?"""
        return self.triaged in self.AWAY

    @property
    def blamed(self) -> Commit:
        """The commit that did it: where a merge brought it, that of its branch."""
        return self.culprit or self.first_bad

    @property
    def change_percent(self) -> float | None:
        """By how much the value moved, in percent of the old level; None where that was 0."""
        return None if self.ratio is None else 100 * (self.ratio - 1)

    @property
    def level_after(self) -> float:
        """The new level by the size that is told; points of other hours may have seen another one."""
        metric = self.series.metric
        if self.ratio is None or metric.has_sign:
            return self.after
        return metric.level(self.before, self.ratio)

    @property
    def names_commit(self) -> bool:
        """May a sentence name its commit as the culprit? Only code has one."""
        return self.cause in ("", self.Cause.CODE)


class Change(models.Model):
    """A step found in one series between two commits."""

    class Direction(models.TextChoices):
        REGRESSION = "regression"
        IMPROVEMENT = "improvement"

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="changes")
    first_bad = models.ForeignKey(
        Commit, on_delete=models.CASCADE, related_name="+", help_text="First of the new level."
    )
    last_good = models.ForeignKey(
        Commit, on_delete=models.CASCADE, related_name="+", help_text="Last of the old level."
    )
    position = models.PositiveIntegerField(help_text="Of the first commit of the new level.")
    direction = models.CharField(max_length=20, choices=Direction.choices)
    before = models.FloatField()
    after = models.FloatField()
    ratio = models.FloatField(null=True, blank=True, help_text="after / before; empty where before is 0")
    low = models.FloatField(null=True, blank=True)
    high = models.FloatField(null=True, blank=True)
    confidence = models.FloatField()
    doubts = ArrayField(models.CharField(max_length=200), default=list, blank=True)
    # What else changed between the two runs at the step, as `driver 550.1 -> 560.2`.
    markers = ArrayField(models.CharField(max_length=200), default=list, blank=True)
    innocent = models.BooleanField(
        default=False, help_text="What changed around the code explains it: no commit is blamed."
    )
    regression = models.ForeignKey(
        Regression, null=True, blank=True, on_delete=models.SET_NULL, related_name="changes"
    )
    found_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["series", "first_bad"], name="change_once_per_commit")]

    def __str__(self) -> str:
        return f"{self.direction} in series {self.series_id} at {self.position}"
