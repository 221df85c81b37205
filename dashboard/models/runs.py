from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from dashboard.models.configurations import Configuration, Configured
from dashboard.models.environments import Environment
from dashboard.models.leases import LeasedJob, is_overdue
from dashboard.models.machines import Machine
from dashboard.models.measured_json import MeasuredJsonDecoder
from dashboard.models.projects import Commit, Project, Trigger
from dashboard.page_addresses import page_address


class Run(Configured, LeasedJob):
    """One case at one commit on one machine: requested, measured, stored. docs/flow.md draws its states."""

    class State(models.TextChoices):
        REQUESTED = "requested"
        CLAIMED = "claimed"
        PREPARING = "preparing"
        MEASURING = "measuring"
        STORING = "storing"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    class Failure(models.TextChoices):
        CHECKOUT = "checkout"
        ENVIRONMENT = "environment"
        TIMEOUT = "timeout"
        CRASH = "crash"
        NO_DOCUMENT = "no document"
        BAD_DOCUMENT = "bad document"
        LOST = "lost"

    class Origin(models.TextChoices):
        MEASURED = "measured"
        # Brought in from another tool's results: no machine, no log, no document.
        IMPORTED = "imported"
        # Measured elsewhere, such as in somebody's CI, and posted with its document: no machine, no log.
        POSTED = "posted"
        # A pinned commit again, to see whether its machine moved: its values are no points of its series.
        SENTINEL = "sentinel"

    TERMINAL = (State.DONE, State.FAILED, State.CANCELLED)
    HELD = (State.CLAIMED, State.PREPARING, State.MEASURING, State.STORING)
    REQUESTED = State.REQUESTED
    IS_OVERDUE = is_overdue("claimed_at", models.F("time_limit"))

    commit = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="runs")
    # The version is what the manifest of the commit said when the run was requested.
    configuration = models.ForeignKey(Configuration, on_delete=models.CASCADE, related_name="runs")
    # Known here too, so that a project's newest runs are found however many others have.
    project = models.ForeignKey(
        Project,
        on_delete=models.CASCADE,
        related_name="+",
        editable=False,
        db_index=False,
        db_default=models.Value(0),
        help_text="Of its case; the database fills it.",
    )
    trigger = models.ForeignKey(
        Trigger, null=True, blank=True, on_delete=models.SET_NULL, related_name="runs"
    )
    # What was disturbed is measured again by the site itself, later: nobody waits for that.
    IS_AWAITED = models.Q(
        models.Q(trigger__source__in=Trigger.AWAITED) | models.Q(awaited_by__isnull=False), not_before=None
    )
    IS_REMEASURING = ~models.Q(state__in=TERMINAL) & models.Q(not_before__isnull=False, awaited_by=None)
    awaited_by = models.ForeignKey(
        Trigger,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
        help_text="The request of somebody who waits for it, where the site had asked for it before.",
    )
    origin = models.CharField(
        max_length=10,
        choices=Origin.choices,
        default=Origin.MEASURED,
        help_text="Measured here, imported, posted, or measured again as a sentinel.",
    )
    only_on = models.ForeignKey(
        Machine,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="The one machine that may measure it; empty: any of the pool.",
    )
    repetitions = models.PositiveSmallIntegerField()
    time_limit = models.PositiveIntegerField(help_text="Seconds for the whole run.")
    priority = models.SmallIntegerField(default=0, help_text="Higher is claimed first.")

    state = models.CharField(max_length=20, choices=State.choices, default=State.REQUESTED)
    machine = models.ForeignKey(Machine, null=True, blank=True, on_delete=models.PROTECT, related_name="runs")
    fingerprint = models.JSONField(default=dict, blank=True, help_text="The machine as it was for this run.")
    box = models.JSONField(
        null=True, blank=True, help_text="The box that its code was measured in, as its host described it."
    )
    environment = models.ForeignKey(
        Environment,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="runs",
        help_text="What its document says of the software and the system, to be compared with other runs'.",
    )

    progress = models.FloatField(default=0, help_text="0 to 1 of the measurement.")
    failure = models.CharField(max_length=20, choices=Failure.choices, blank=True)
    reason = models.TextField(blank=True, help_text="Why it failed or was cancelled, in one sentence.")
    tainted = models.BooleanField(default=False, help_text="Kept out of judgement by one of its warnings.")
    # Of its document, which is too large to be read for the many runs of a machine.
    warning_codes = ArrayField(
        models.TextField(), default=list, blank=True, help_text="Of its document's warnings, each once."
    )
    calibration = models.FloatField(
        null=True, blank=True, help_text="Seconds of the calibration loop: the median over its repetitions."
    )

    points_thinned = models.BooleanField(
        default=False, help_text="With age it lost points of series that no judgement reads."
    )
    counted_at = models.CharField(
        max_length=64,
        blank=True,
        default="",
        help_text="The commit that its counters were taken over from; empty: counted here, or not at all.",
    )
    host_costs = models.JSONField(
        default=dict, blank=True, help_text="Seconds that its host spent around the measurement, by part."
    )

    # Earlier it isn't claimed: what was disturbed is measured again when the machine is calmer.
    not_before = models.DateTimeField(null=True, blank=True)
    claimed_at = models.DateTimeField(null=True, blank=True)
    measuring_at = models.DateTimeField(null=True, blank=True)
    judged_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["commit", "configuration"],
                condition=~models.Q(state__in=["done", "failed", "cancelled"]) & ~models.Q(origin="sentinel"),
                name="run_active_once",
            ),
            models.UniqueConstraint(
                fields=["configuration", "only_on"],
                condition=models.Q(origin="sentinel") & ~models.Q(state__in=["done", "failed", "cancelled"]),
                name="run_sentinel_active_once",
            ),
        ]
        indexes = [
            models.Index(
                fields=["-priority", "requested_at"],
                condition=models.Q(state="requested"),
                name="run_waiting",
            ),
            models.Index(
                fields=["lease_until"],
                condition=models.Q(state__in=["claimed", "preparing", "measuring", "storing"]),
                name="run_held",
            ),
            models.Index(
                fields=["finished_at"],
                condition=models.Q(state="done", judged_at__isnull=True),
                name="run_unjudged",
            ),
            models.Index(fields=["-requested_at"], name="run_newest"),
            models.Index(fields=["project", "-requested_at", "-id"], name="run_of_project"),
            # Of each configuration the newest, and what is under way, whatever the length of history.
            models.Index(
                fields=["configuration", "-finished_at"], condition=models.Q(state="done"), name="run_done"
            ),
            models.Index(
                fields=["configuration"],
                condition=~models.Q(state__in=["done", "failed", "cancelled"]),
                name="run_under_way",
            ),
            # Whether a configuration has results of another tool: most have none.
            models.Index(
                fields=["configuration"], condition=models.Q(origin="imported"), name="run_imported"
            ),
            models.Index(fields=["finished_at"], condition=models.Q(state="failed"), name="run_failed"),
            models.Index(fields=["machine", "-claimed_at"], name="run_of_machine"),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"

    def get_absolute_url(self) -> str:
        return page_address("run", self.pk)

    @property
    def is_postponed(self) -> bool:
        """True while nobody may claim it yet: what was disturbed is measured again at a calmer hour."""
        return (
            self.state == self.REQUESTED and self.not_before is not None and self.not_before > timezone.now()
        )


class RunCost(models.Model):
    """The seconds of one part of a run, from its request to its document; docs/pages.md lists the parts."""

    # For a machine: no time of it.
    WAITING = "waiting"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="costs")
    part = models.CharField(max_length=200)
    seconds = models.FloatField()
    processes = models.PositiveIntegerField(default=1, help_text="That ran it, in turn or side by side.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "part"], name="run_cost_once")]

    def __str__(self) -> str:
        return f"{self.part} of run {self.run_id}"


class RunLog(models.Model):
    """What a run printed, at a bounded size: apart from the run, whose row is rewritten at each heartbeat."""

    run = models.OneToOneField(Run, primary_key=True, on_delete=models.CASCADE, related_name="log")
    text = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"log of run {self.pk}"


class Document(models.Model):
    """The document of a run as it came from the harness; with age it loses what is large."""

    run = models.OneToOneField(Run, primary_key=True, on_delete=models.CASCADE, related_name="document")
    format = models.CharField(max_length=40)
    body = models.JSONField(decoder=MeasuredJsonDecoder)
    sha256 = models.CharField(max_length=64)
    # Dropped with age; what the run never had is no reason.
    telemetry_dropped = models.BooleanField(default=False)
    profile_dropped = models.BooleanField(default=False)
    rewrite_due = models.BooleanField(
        default=False, help_text="Its text still holds what was dropped: it is written anew by and by."
    )
    stored_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        # None, as long as nothing is being dropped.
        indexes = [
            models.Index(fields=["run"], condition=models.Q(rewrite_due=True), name="document_rewrite_due")
        ]

    def __str__(self) -> str:
        return f"document of run {self.pk}"


class Telemetry(models.Model):
    """One channel of one repetition over time, on a fixed grid; a missing reading is NULL."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="telemetry")
    repetition = models.PositiveSmallIntegerField()
    channel = models.CharField(max_length=60)
    device = models.PositiveSmallIntegerField(null=True, blank=True)
    unit = models.CharField(max_length=30)
    start = models.FloatField(help_text="Seconds since the repetition began.")
    interval = models.FloatField(help_text="Seconds between two readings.")
    values = ArrayField(models.FloatField(null=True), default=list)
    mean = models.FloatField(null=True, blank=True)
    peak = models.FloatField(null=True, blank=True)
    idle_share = models.FloatField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run", "repetition", "channel", "device"],
                nulls_distinct=False,
                name="telemetry_channel_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.channel} of run {self.run_id}"
