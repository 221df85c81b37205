from __future__ import annotations

import math
from typing import Any

from django.conf import settings
from django.db import models

from dashboard.detection.doubts import REPORTED_AGAIN
from dashboard.models.experiments import Experiment
from dashboard.models.guards import GuardResult
from dashboard.models.projects import Commit, Project
from dashboard.models.runs import Run
from dashboard.models.series import Metric, Series
from dashboard.page_addresses import page_address


class Regression(models.Model):
    """The changes for the worse that one commit range caused, across series: one cause, one regression.

    Written by `dashboard.regressions.apply` alone.
    """

    class State(models.TextChoices):
        SUSPECTED = "suspected"
        CONFIRMED = "confirmed"
        UNDECIDED = "undecided"
        REFUTED = "refuted"

    class Kind(models.TextChoices):
        PERFORMANCE = "performance"
        QUALITY = "quality"

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

    # A person has decided: out of the open ones, reported to nobody any more, not reopened by the same step.
    TRIAGED_AWAY = (Triaged.INTENDED, Triaged.NOT_REAL, Triaged.WONT_FIX)

    class Place(models.TextChoices):
        # Where a phase lost its time; nothing where no profile says it.
        UNDETERMINED = ""
        HOST = "host"
        # The host, which has no device to wait for: the usual one, said on the page, not in titles.
        HOST_ALONE = "host alone"
        DEVICE = "device"
        # The host waits in the phase for the device's work of `place_phase`.
        WAITS_FOR_DEVICE = "waits for device"
        # Their times grew alike.
        UNKNOWN = "host or device"

    class Withdrawal(models.TextChoices):
        # A later judgement no longer finds the step.
        NOT_FOUND = "not found"
        # Its commits are no longer on the branch: history was rewritten.
        REWRITTEN = "rewritten"

    # A function or an operation that is called so many times as often as before is called more often.
    MORE_CALLS = 1.2

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="regressions")
    first_bad = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="+")
    last_good = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="+")
    state = models.CharField(max_length=20, choices=State.choices, default=State.SUSPECTED)
    # That of its primary change: a time's, unless memory moved more.
    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="regressions")
    # The levels of the series' points. Its size may be another one: that which pairs measured.
    before = models.FloatField()
    after = models.FloatField()
    paired_before = models.FloatField(
        null=True,
        blank=True,
        help_text="The level before, as the pairs that sized it measured it; empty without pairs.",
    )
    ratio = models.FloatField(null=True, blank=True, help_text="after / before; empty where before is 0")
    low = models.FloatField(null=True, blank=True, help_text="Of the ratio's interval.")
    high = models.FloatField(null=True, blank=True, help_text="Of the ratio's interval.")
    phase = models.CharField(max_length=200, blank=True, help_text="The phase that explains most of it.")
    phase_share = models.FloatField(
        null=True, blank=True, help_text="How much of it that phase explains, 0 to 1."
    )
    place = models.CharField(
        max_length=20,
        choices=Place.choices,
        blank=True,
        default=Place.UNDETERMINED,
        help_text="Host or device: where that phase lost its time.",
    )
    place_phase = models.CharField(
        max_length=200, blank=True, help_text="The phase whose device work the host waits for."
    )
    # Likeliest first; each with function, file, line, phase, calls_before, calls_after (per step),
    # self_before, self_after (seconds per step), changed (was it touched by the commit range?).
    suspects = models.JSONField(default=list, blank=True)
    # Tensor operations, those of the phase first; each with operation, phase, count_before, count_after,
    # seconds_before, seconds_after (of the host, per step), share (of all growth, or of the loss).
    operations = models.JSONField(default=list, blank=True)
    # The device's time, before and after, in seconds per step: step, busy; kernels that grew (kernel,
    # operation, phase, count_* and seconds_*); idle (cause, phase, seconds_*). Empty without a device.
    device = models.JSONField(default=dict, blank=True)
    # The lines of suspects that the commits changed: file, function, left_out, lines (sign, old, new, text).
    excerpts = models.JSONField(default=list, blank=True)
    # Ranks and DataLoader workers that the others wait for, likeliest first: codes with their values.
    slow_processes = models.JSONField(default=list, blank=True)
    only_changed_by = models.CharField(
        max_length=64, blank=True, help_text="Of several commits the only one that changed the first suspect."
    )
    explained_for = models.CharField(
        max_length=200,
        blank=True,
        help_text="What its explanation was made for; another key asks for a new one.",
    )
    cause = models.CharField(
        max_length=30, choices=Cause.choices, blank=True, help_text="Its class; empty: not decided yet."
    )
    # What decided the class: codes with their values; the first one says what moved.
    cause_evidence = models.JSONField(default=list, blank=True)
    decided_for = models.CharField(
        max_length=300,
        blank=True,
        help_text="What its class was decided for; another key asks for a new one.",
    )
    # First bad is then the merge by which it came.
    culprit = models.ForeignKey(
        Commit,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="Of a merge to blame: the commit of its branch.",
    )
    # What bisection says beside the commit, of merges and of commits that don't run: a code with its values.
    bisection = models.JSONField(default=dict, blank=True)
    # Of a loss of quality: how the guard stands, over how many seeds it was proved, and what became of the
    # step's time in the same pairs.
    learning = models.JSONField(default=dict, blank=True)
    residual = models.BooleanField(
        default=False, help_text="The rest of another one's step, which no series shows by itself so far."
    )
    experiments = models.ManyToManyField(
        Experiment, through="RegressionExperiment", related_name="regressions", blank=True
    )
    # Runs of commits that tell where it is; the proof goes on when they end, however they do.
    awaited_runs = models.ManyToManyField(Run, related_name="awaiting_regressions", blank=True)
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
    # It is none any more; kept, so that what was alerted can be looked up.
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    withdrawal = models.CharField(
        max_length=20, choices=Withdrawal.choices, blank=True, help_text="Why it was withdrawn."
    )

    class Meta:
        # Those of one judgement have one moment: pages of a list would share a row, and lack one.
        ordering = ["-opened_at", "-pk"]
        # One that stands at a commit at most: an exclusion constraint, which the migration makes by hand,
        # since several move at once and only the end of a transaction counts.
        indexes = [models.Index(fields=["project", "first_bad"], name="regression_of_commit")]

    def __str__(self) -> str:
        return f"regression {self.pk}"

    def get_absolute_url(self) -> str:
        return page_address("regression", self.pk)

    @property
    def kind(self) -> str:
        """What was lost: what is learned, or speed and size."""
        quality = self.series.metric.kind == Metric.Kind.QUALITY
        return self.Kind.QUALITY if quality else self.Kind.PERFORMANCE

    @property
    def is_unreported(self) -> bool:
        """True where the quality isn't reported any more: its level after is none."""
        return self.learning.get("state", "") in GuardResult.UNREPORTED

    @property
    def lost_learning(self) -> dict[str, Any] | None:
        """As webhooks and the API tell it; None where it isn't a quality that was lost."""
        if self.kind != self.Kind.QUALITY:
            return None
        learning, time = self.learning, self.learning.get("step_time")
        return {
            "guard": learning.get("state") or None,
            "bound": learning.get("bound"),
            "seeds": learning.get("seeds", 0),
            "unreported": learning.get("unreported", 0),
            "step_time_change_percent": round(100 * (time[0] - 1), 9) if time else None,
        }

    @property
    def is_triaged_away(self) -> bool:
        """True where a person has triaged it away."""
        return self.triaged in self.TRIAGED_AWAY

    @property
    def blamed(self) -> Commit:
        """The commit that did it: where a merge brought it, that of its branch."""
        return self.culprit or self.first_bad

    @property
    def change_percent(self) -> float | None:
        """By how much the value moved, in percent of the old level; None where that was 0."""
        return None if self.ratio is None else 100 * (self.ratio - 1)

    @property
    def level_before(self) -> float:
        """The old level that is shown: that of the pairs, where they say how large the step is."""
        return self.before if self.paired_before is None else self.paired_before

    @property
    def level_after(self) -> float:
        """The new level by the size that is shown; points of other hours may have seen another one."""
        metric = self.series.metric
        if self.ratio is None or metric.has_sign:
            return self.after + (self.level_before - self.before)
        level = metric.level(self.level_before, self.ratio)
        # What was counted is told as it was counted: 50 times 1.42 isn't 71 to the last digit.
        return self.after if math.isclose(level, self.after, rel_tol=1e-12) else level

    @property
    def names_commit(self) -> bool:
        """True where a sentence may blame commits: only code has a culprit."""
        return self.cause in ("", self.Cause.CODE)

    @staticmethod
    def difference_key(base: str, head: str) -> str:
        """The difference between two commits, by their hashes, as `explained_for` has it."""
        return f"{base[:12]}..{head[:12]}"

    @property
    def explains_own_commits(self) -> bool:
        """False while its explanation is still that of the wider range from which it was narrowed.

        What those commits changed may have been changed by one that is no longer among them.
        """
        commits = (self.last_good.hash, self.first_bad.hash)
        if self.culprit and self.culprit.parents:
            commits = (self.culprit.parents[0], self.culprit.hash)
        return not self.explained_for or self.difference_key(*commits) in self.explained_for.split()

    @property
    def came_gradually(self) -> bool:
        """True where pairs show it over its whole range and at no commit of that, or small steps of a counter
        add up to it.
        """
        return bool(self.bisection) and self.bisection.get("code") == "gradual"

    @property
    def commits_left(self) -> int:
        """How many commits its range holds: the cause is one of them, and no sentence names one sooner.

        What came gradually may have them all for its cause.
        """
        return 1 if self.culprit_id else max(1, self.first_bad.position - self.last_good.position)


class Change(models.Model):
    """A step found in one series between two commits, or work that moved between its phases there."""

    class Direction(models.TextChoices):
        REGRESSION = "regression"
        IMPROVEMENT = "improvement"
        # Some phases grew by as much as others shrank: the step stands still, and nothing was lost.
        MOVED = "moved"

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
    # Codes with their values.
    doubts = models.JSONField(default=list, blank=True)
    # What else changed between the two runs at the step: [name, before, after] each.
    markers = models.JSONField(default=list, blank=True)
    environment_only = models.BooleanField(
        default=False, help_text="What changed around the code explains it: no commit is blamed."
    )
    # The positions of the measured commits before and behind it: noise may place the step so far off.
    reach_good = models.PositiveIntegerField()
    reach_bad = models.PositiveIntegerField()
    guard_state = models.CharField(
        max_length=10,
        choices=GuardResult.State.choices,
        blank=True,
        default="",
        help_text="How the first run of the new level stood to its guard; empty: the series has none.",
    )
    guard_bound = models.FloatField(null=True, blank=True, help_text="The bound that it lies beyond.")
    regression = models.ForeignKey(
        Regression, null=True, blank=True, on_delete=models.SET_NULL, related_name="changes"
    )
    found_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["series", "first_bad"], name="change_once_per_commit")]

    def __str__(self) -> str:
        return f"{self.direction} in series {self.series_id} at {self.position}"

    @property
    def is_move(self) -> bool:
        return self.direction == self.Direction.MOVED

    @property
    def is_unreported(self) -> bool:
        """True where no run of the new level reports the quality."""
        return self.guard_state in GuardResult.UNREPORTED

    @property
    def was_unreported(self) -> bool:
        """True where no run of the old level reported the quality: `before` is what that counts as."""
        return any(doubt["code"] == REPORTED_AGAIN for doubt in self.doubts)

    @property
    def known_before(self) -> float | None:
        """The level before; None where the quality wasn't reported."""
        return None if self.was_unreported else self.before

    @property
    def known_after(self) -> float | None:
        """The level after; None where the quality isn't reported any more."""
        return None if self.is_unreported else self.after

    @property
    def commits_left(self) -> int:
        """How many commits lie between its levels, the first of the new one included."""
        return max(1, self.first_bad.position - self.last_good.position)


class RegressionExperiment(models.Model):
    """An experiment that a regression asked for, with the series that it weighs."""

    regression = models.ForeignKey(Regression, on_delete=models.CASCADE, related_name="experiment_links")
    experiment = models.OneToOneField(Experiment, on_delete=models.CASCADE, related_name="regression_link")
    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="+")
    applied_at = models.DateTimeField(null=True, blank=True, help_text="When its verdict was acted upon.")

    def __str__(self) -> str:
        return f"{self.experiment} of {self.regression}"
