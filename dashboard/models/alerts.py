from __future__ import annotations

from datetime import time

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from dashboard.models.leases import Leased
from dashboard.models.projects import Project
from dashboard.models.regressions import Regression
from dashboard.secrets import EncryptedField


class Channel(models.Model):
    """Where alerts of a project go: a kind, an address, and when and about what it is notified."""

    class Kind(models.TextChoices):
        EMAIL = "email"
        WEBHOOK = "webhook"
        SLACK = "slack"
        DISCORD = "discord"
        TEAMS = "teams"
        MATTERMOST = "mattermost"
        MATRIX = "matrix"
        PAGERDUTY = "pagerduty"
        ISSUE = "issue"

    class Digest(models.TextChoices):
        NONE = ""
        DAILY = "daily"
        WEEKLY = "weekly"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="channels")
    kind = models.CharField(max_length=20, choices=Kind.choices)
    name = models.CharField(max_length=100, blank=True, help_text="What people call it, such as #training.")
    # What may be shown. Where the URL itself is a secret: its host, and digits that tell two of them apart.
    address = models.CharField(max_length=500, help_text="An e-mail address, or where messages are posted.")
    secret = EncryptedField(
        blank=True,
        default="",
        help_text="Signs a webhook's requests; else the URL, token or key.",
    )
    # These two are the rule of a channel that has none of its own.
    minimum_percent = models.FloatField(default=0, help_text="Smaller changes are not reported here.")
    suspicions = models.BooleanField(
        default=False, help_text="Tell what is only suspected too, before it is confirmed."
    )
    enabled = models.BooleanField(default=True)
    pictures = models.BooleanField(default=True, help_text="Show a picture of the step.")
    remind_days = models.PositiveSmallIntegerField(
        default=7, help_text="Days after which it is reminded once of what waits for triage; 0 is never."
    )
    muted_until = models.DateTimeField(null=True, blank=True, help_text="Messages wait until then.")
    quiet_from = models.TimeField(null=True, blank=True, help_text="Of each day, in its time zone.")
    quiet_until = models.TimeField(null=True, blank=True)
    time_zone = models.CharField(max_length=60, default="UTC", help_text="Such as Europe/Berlin.")
    digest = models.CharField(
        max_length=10, choices=Digest.choices, blank=True, default=Digest.NONE, help_text="Empty: at once."
    )
    digest_at = models.TimeField(default=time(9), help_text="When a digest is sent, in its time zone.")
    next_digest_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "kind", "address"], name="channel_once_per_project")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name or self.address}"


class AlertRule(models.Model):
    """Which regressions a channel is notified of. Of its rules the first that a regression meets decides."""

    class State(models.TextChoices):
        SUSPECTED = "suspected"
        CONFIRMED = "confirmed"

    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="rules")
    position = models.PositiveSmallIntegerField(help_text="They are looked at in this order.")
    case = models.CharField(
        max_length=300, blank=True, help_text="Of a benchmark or a case, such as snake_*; empty: any."
    )
    metric = models.CharField(max_length=150, blank=True, help_text="Such as *memory; empty: any.")
    branch = models.CharField(max_length=250, blank=True, help_text="Such as release/*; empty: any.")
    minimum_percent = models.FloatField(default=0, help_text="Smaller changes don't meet it.")
    states = ArrayField(
        models.CharField(max_length=20, choices=State.choices), help_text="Those in which it is reported."
    )
    notifies = models.BooleanField(default=True, help_text="False: what meets it is left out.")

    class Meta:
        verbose_name = "alert rule"
        ordering = ["position", "pk"]
        indexes = [models.Index(fields=["channel", "position"], name="alert_rule_order")]

    def __str__(self) -> str:
        return f"rule {self.position} of {self.channel}"


class Snooze(models.Model):
    """A regression of which nobody is notified for a while: until a date, or until it has grown."""

    regression = models.OneToOneField(Regression, on_delete=models.CASCADE, related_name="snooze")
    until = models.DateTimeField(null=True, blank=True)
    growth_percent = models.FloatField(
        null=True, blank=True, help_text="It ends once the level is so much worse than when it began."
    )
    ratio = models.FloatField(null=True, blank=True, help_text="The regression's, when it began.")
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"snooze of {self.regression}"


class Delivery(Leased):
    """One message on its way to one channel: the delivery log."""

    class Event(models.TextChoices):
        OPENED = "opened"
        CONFIRMED = "confirmed"
        RECOVERED = "recovered"
        REOPENED = "reopened"
        WITHDRAWN = "withdrawn"
        # A person has put it away: for channels that keep an incident open.
        CLOSED = "closed"
        REMINDER = "reminder"
        # Of a claim: an experiment refutes what held before, or shows again what was refuted.
        CLAIM_REFUTED = "claim_refuted"
        CLAIM_HOLDS = "claim_holds"
        DIGEST = "digest"
        TEST = "test"

    class State(models.TextChoices):
        PENDING = "pending"
        # It waits for the channel's next digest.
        COLLECTED = "collected"
        DELIVERED = "delivered"
        FAILED = "failed"

    class ReportedState(models.TextChoices):
        NOTHING = ""
        SUSPECTED = "suspected"
        CONFIRMED = "confirmed"
        RECOVERED = "recovered"
        WITHDRAWN = "withdrawn"
        CLOSED = "closed"

    MOST_ATTEMPTS = 12

    # Empty of a digest, of a test, and of what is said of a claim.
    regression = models.ForeignKey(
        Regression, null=True, blank=True, on_delete=models.CASCADE, related_name="deliveries"
    )
    claim_measurement = models.ForeignKey(
        "dashboard.ClaimMeasurement",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="deliveries",
        help_text="Of a message about a claim: what proves it.",
    )
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=20, choices=Event.choices)
    # Counts how often the regression came back: each time anew it may recover, be withdrawn, come back.
    round = models.PositiveSmallIntegerField(default=0)
    reported_state = models.CharField(
        max_length=20,
        choices=ReportedState.choices,
        blank=True,
        default=ReportedState.NOTHING,
        help_text="How the regression stood by this message.",
    )
    opened = models.CharField(
        max_length=40, blank=True, help_text="What it opened at its receiver: the number of an issue."
    )
    state = models.CharField(max_length=20, choices=State.choices, default=State.PENDING)
    # One sentence per attempt that did not get through, oldest first.
    errors = ArrayField(models.TextField(), default=list, blank=True)
    next_attempt_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)
    delivered_at = models.DateTimeField(null=True, blank=True)
    seconds = models.FloatField(null=True, blank=True, help_text="What the last attempt took.")
    digest = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="collected"
    )

    class Meta:
        verbose_name_plural = "deliveries"
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["regression", "channel", "event", "round"], name="delivery_once_per_event"
            ),
            models.UniqueConstraint(
                fields=["claim_measurement", "channel"], name="delivery_once_per_claim_measurement"
            ),
        ]
        indexes = [
            models.Index(fields=["next_attempt_at"], condition=models.Q(state="pending"), name="delivery_due")
        ]

    def __str__(self) -> str:
        about = self.regression or self.claim_measurement
        return f"{self.event} of {about} to {self.channel}" if about else f"{self.event}"
