from __future__ import annotations

from django.conf import settings
from django.db import models

from dashboard.models.configurations import Configuration
from dashboard.models.experiments import Experiment
from dashboard.models.projects import Commit, Project
from dashboard.models.runs import Run
from dashboard.page_addresses import page_address


class ClaimsFile(models.Model):
    """The claims.toml of one benchmark, as it was read last at a commit of the project's branch."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="claims_files")
    benchmark = models.CharField(max_length=100)
    document = models.CharField(max_length=500, blank=True, help_text="What says it, by its title.")
    problem = models.TextField(blank=True, help_text="Why it can't be read, in one sentence.")
    # The commit whose file it is, and the one at which its claims were last asked for.
    commit = models.ForeignKey(Commit, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    asked_at_commit = models.ForeignKey(
        Commit, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    asked_at = models.DateTimeField(help_text="When they were last asked for, or the file was found.")
    read_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = "file of claims"
        verbose_name_plural = "files of claims"
        ordering = ["benchmark"]
        constraints = [
            models.UniqueConstraint(fields=["project", "benchmark"], name="claims_file_once_per_benchmark")
        ]

    def __str__(self) -> str:
        return f"claims of {self.benchmark}"

    def get_absolute_url(self) -> str:
        return page_address("benchmark-claims", self.project.slug, self.benchmark)


class Claim(models.Model):
    """What a document or a manifest says an optimization is worth, watched by experiments."""

    class Standing(models.TextChoices):
        """The newest verdict that is sure."""

        NOTHING = ""
        HOLDS = "holds"
        REFUTED = "refuted"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="claims")
    benchmark = models.CharField(max_length=100)
    key = models.CharField(max_length=60, help_text="Its `id` in the file.")
    text = models.TextField(help_text="What is claimed, in the document's words.")
    # As the file has it, so that the harness's own parser makes a claim of it again.
    definition = models.JSONField()
    digest = models.CharField(max_length=16, help_text="Of what is measured and claimed.")
    position = models.PositiveSmallIntegerField(help_text="In its file.")
    listed = models.BooleanField(default=True, help_text="In the file that was read last.")
    reason = models.JSONField(
        default=dict, blank=True, help_text="Why it isn't measured: a code with values."
    )
    # What its measurements along the branch say together.
    verdict = models.CharField(max_length=20, blank=True, help_text="The newest one.")
    standing = models.CharField(max_length=10, choices=Standing.choices, blank=True, default="")
    since = models.ForeignKey(Commit, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    newest = models.ForeignKey(
        "ClaimMeasurement", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ["benchmark", "position", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["project", "benchmark", "key"], name="claim_once_per_benchmark")
        ]

    def __str__(self) -> str:
        return f"{self.benchmark}: {self.key}"

    def get_absolute_url(self) -> str:
        return page_address("claim", self.pk)


class ClaimMeasurement(models.Model):
    """A claim at one commit: the experiment or the run that measured it, what it found, and the verdict."""

    class State(models.TextChoices):
        REQUESTED = "requested"
        DONE = "done"
        CANCELLED = "cancelled"

    class Requester(models.TextChoices):
        PERSON = "person"
        SCRIPT = "script"
        POLICY = "policy"

    claim = models.ForeignKey(Claim, on_delete=models.CASCADE, related_name="measurements")
    commit = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=16, help_text="The claim's, as it was then.")
    requester = models.CharField(max_length=10, choices=Requester.choices)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    # Of a claim about two cases both sides; of one about a case that case, as its run measured it.
    base = models.ForeignKey(Configuration, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    head = models.ForeignKey(Configuration, on_delete=models.CASCADE, related_name="+")
    experiment = models.ForeignKey(
        Experiment, null=True, blank=True, on_delete=models.SET_NULL, related_name="claim_measurements"
    )
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    minutes = models.FloatField(default=0, help_text="That its experiment may take; 0 of a run.")
    state = models.CharField(max_length=10, choices=State.choices, default=State.REQUESTED)
    # How many times better, or the case's value in the claim's unit.
    value = models.FloatField(null=True, blank=True)
    low = models.FloatField(null=True, blank=True)
    high = models.FloatField(null=True, blank=True)
    unit = models.CharField(max_length=30, blank=True)
    verdict = models.CharField(max_length=20, blank=True, help_text="Empty while nothing can be said.")
    evidence = models.JSONField(default=dict, blank=True, help_text="Kind of samples, how many, disturbed.")
    reason = models.JSONField(default=dict, blank=True, help_text="Why there is no clearer verdict.")
    requested_at = models.DateTimeField(auto_now_add=True)
    measured_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "measurement of a claim"
        verbose_name_plural = "measurements of claims"
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["claim", "commit", "head"],
                condition=models.Q(state="requested"),
                name="claim_measured_once_at_a_time",
            )
        ]
        indexes = [
            models.Index(
                fields=["requested_at"],
                condition=models.Q(state="requested"),
                name="claim_measurement_waiting",
            ),
            models.Index(fields=["claim", "-id"], name="claim_measurement_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.claim} at {self.commit}"
