from __future__ import annotations

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from dashboard.models.machines import Machine, Pool
from dashboard.models.projects import Commit
from dashboard.models.regressions import Regression
from dashboard.models.series import Series


class Confirmation(models.Model):
    """Interleaved runs of two commits on one machine, that prove or refute a step between them.

    Its states are those of a run; docs/regressions.md draws them. A bisection is a row of these: each
    measures one commit in the middle against the last good one.
    """

    class Purpose(models.TextChoices):
        CONFIRM = "confirm"
        BISECT = "bisect"
        # Of a commit that a merge brought, against its merge base.
        BRANCH = "branch"

    class State(models.TextChoices):
        REQUESTED = "requested"
        MEASURING = "measuring"
        DONE = "done"
        CANCELLED = "cancelled"

    class Verdict(models.TextChoices):
        # Of the whole step between the two commits.
        CONFIRMED = "confirmed"
        REFUTED = "refuted"
        # Of a commit in the middle: it has the whole step, none of it, or a part.
        BAD = "bad"
        GOOD = "good"
        BETWEEN = "between"
        # Of either: the budget was spent, or one of the commits doesn't run.
        UNDECIDED = "undecided"
        UNTESTABLE = "untestable"

    ACTIVE = (State.REQUESTED, State.MEASURING)
    MOST_ATTEMPTS = 3

    regression = models.ForeignKey(Regression, on_delete=models.CASCADE, related_name="confirmations")
    purpose = models.CharField(max_length=20, choices=Purpose.choices)
    good = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="+")
    bad = models.ForeignKey(
        Commit, on_delete=models.CASCADE, related_name="+", help_text="Or the commit in the middle."
    )
    series = models.ForeignKey(
        Series, on_delete=models.CASCADE, related_name="+", help_text="What is weighed."
    )
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="+")
    # The step that was suspected, in the metric's unit: what a pair's share is a part of.
    before = models.FloatField()
    after = models.FloatField()

    error = models.FloatField(default=0.01, help_text="The chance of a false verdict that it may take.")
    state = models.CharField(max_length=20, choices=State.choices, default=State.REQUESTED)
    verdict = models.CharField(max_length=20, choices=Verdict.choices, blank=True)
    reason = models.TextField(blank=True, help_text="Why there is no clearer verdict, in one sentence.")
    attempt = models.PositiveSmallIntegerField(default=0, help_text="Counted at each claim.")
    lease = models.UUIDField(default=uuid.uuid4)
    lease_until = models.DateTimeField(null=True, blank=True)
    machine = models.ForeignKey(Machine, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    activity = models.CharField(max_length=200, blank=True, help_text="What it is doing, for people.")
    in_turns = models.BooleanField(
        default=False, help_text="Both commits' steps alternate; else one process follows the other."
    )

    # What the pairs say so far; ratio is bad / good.
    ratio = models.FloatField(null=True, blank=True)
    low = models.FloatField(null=True, blank=True)
    high = models.FloatField(null=True, blank=True)
    seconds = models.FloatField(default=0, help_text="Spent measuring, all attempts together.")
    commands = ArrayField(models.TextField(), default=list, blank=True, help_text="What reproduces it.")

    requested_at = models.DateTimeField(default=timezone.now)
    measuring_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    applied_at = models.DateTimeField(null=True, blank=True, help_text="When its verdict was acted upon.")

    class Meta:
        ordering = ["requested_at", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["regression"],
                condition=models.Q(state__in=["requested", "measuring"]),
                name="confirmation_active_once",
            )
        ]
        indexes = [
            models.Index(
                fields=["pool", "requested_at"],
                condition=models.Q(state="requested"),
                name="confirmation_waiting",
            )
        ]

    def __str__(self) -> str:
        return f"{self.purpose} {self.good} against {self.bad}"


class Pair(models.Model):
    """One repetition of each of a confirmation's two commits, measured next to each other."""

    confirmation = models.ForeignKey(Confirmation, on_delete=models.CASCADE, related_name="pairs")
    index = models.PositiveSmallIntegerField()
    good_first = models.BooleanField(help_text="Which was measured first, or began, alternates.")
    good = models.FloatField(help_text="The last good commit's value, in the metric's unit.")
    bad = models.FloatField()
    # Kept, shown, and not weighed: other work disturbed one of the two.
    disturbed = models.BooleanField(default=False)
    seconds = models.FloatField(help_text="That both took.")
    phases = models.JSONField(
        default=dict, help_text="Own time by phase, in seconds per step: [of the good one, of the bad one]."
    )
    sweeps = models.JSONField(
        default=dict,
        help_text="Where a metric of a sweep is weighed: parameter, amount, points good and bad.",
    )
    measured_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["index"]
        constraints = [models.UniqueConstraint(fields=["confirmation", "index"], name="pair_once")]

    def __str__(self) -> str:
        return f"pair {self.index} of {self.confirmation_id}"
