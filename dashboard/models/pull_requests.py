from __future__ import annotations

from django.conf import settings
from django.db import models

from dashboard.models.configurations import Configuration
from dashboard.models.experiments import Experiment
from dashboard.models.projects import Commit, Project
from dashboard.page_addresses import page_address
from dashboard.repositories import LONGEST_BRANCH


class PullRequest(models.Model):
    """A proposal to merge a branch, as its forge knows it."""

    class State(models.TextChoices):
        OPEN = "open"
        CLOSED = "closed"
        MERGED = "merged"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="pull_requests")
    number = models.PositiveBigIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    title = models.CharField(max_length=500, blank=True)
    author = models.CharField(max_length=200, blank=True)
    url = models.CharField(max_length=1000, blank=True)
    head_hash = models.CharField(max_length=64)
    head_ref = models.CharField(max_length=LONGEST_BRANCH, blank=True)
    base_ref = models.CharField(max_length=LONGEST_BRANCH)
    # Its head lies in another repository: whoever proposes it needn't have any right here.
    is_fork = models.BooleanField(default=False)
    merge_hash = models.CharField(max_length=64, blank=True)
    comment_id = models.CharField(
        max_length=100, blank=True, help_text="The one comment that is kept up to date."
    )
    publishing_until = models.DateTimeField(
        null=True,
        blank=True,
        help_text="While a worker publishes at its forge: of two one comments.",
    )
    # By the clock of its forge: what it reported of an earlier moment is no news.
    forge_updated_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "number"], name="pull_request_once")]

    def __str__(self) -> str:
        return f"#{self.number}"


class Check(models.Model):
    """The answer to one head, of a pull request or of a branch: it against its merge base, by experiments."""

    class State(models.TextChoices):
        # For somebody's approval of that very head: it comes from a fork.
        WAITING = "waiting"
        REQUESTED = "requested"
        MEASURING = "measuring"
        DONE = "done"
        CANCELLED = "cancelled"

    class Answer(models.TextChoices):
        WORSE = "worse"
        NOT_WORSE = "not worse"
        NOT_KNOWN = "not known"

    ACTIVE = (State.WAITING, State.REQUESTED, State.MEASURING)

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="checks")
    pull_request = models.ForeignKey(
        PullRequest, null=True, blank=True, on_delete=models.CASCADE, related_name="checks"
    )
    head_hash = models.CharField(max_length=64)
    # What it is to be merged into: the branch's name, and its tip when the check was asked for. The merge
    # base is found from that tip and no later one, whatever is pushed meanwhile.
    onto = models.CharField(max_length=LONGEST_BRANCH)
    onto_hash = models.CharField(max_length=64, blank=True)
    base_commit = models.ForeignKey(Commit, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    head_commit = models.ForeignKey(Commit, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    benchmarks = models.JSONField(default=list, blank=True, help_text="Only these; empty: those it touches.")
    quick = models.BooleanField(null=True, blank=True, help_text="Empty: as each case is measured otherwise.")
    minutes = models.FloatField(help_text="That all of its experiments may take together.")
    floor = models.FloatField(help_text="A smaller part is no reason to refuse the head.")

    state = models.CharField(max_length=20, choices=State.choices, default=State.REQUESTED)
    answer = models.CharField(max_length=20, choices=Answer.choices, blank=True)
    # Why there is no clearer answer, or why it was cancelled: a code with its values.
    reason = models.JSONField(default=dict, blank=True)
    # Cases that weren't measured, each with the code of why.
    left_out = models.JSONField(default=list, blank=True)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    # Account names of this site, or of the forge.
    approved_by = models.CharField(max_length=200, blank=True)
    intended_by = models.CharField(max_length=200, blank=True)
    intended_person = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="Where they said so with an account of this site.",
    )
    requested_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    published = models.JSONField(
        default=dict,
        blank=True,
        help_text="What its forge was sent last: the status with its sentence, and the comment's SHA-256.",
    )

    class Meta:
        ordering = ["-requested_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["pull_request"],
                condition=models.Q(state__in=("waiting", "requested", "measuring")),
                name="check_active_once",
            )
        ]
        indexes = [
            models.Index(fields=["project", "-requested_at"], name="check_newest"),
            models.Index(
                fields=["requested_at"],
                condition=models.Q(state__in=("requested", "measuring")),
                name="check_under_way",
            ),
        ]

    def __str__(self) -> str:
        return f"check {self.pk}"

    def get_absolute_url(self) -> str:
        return page_address("check", self.pk)


class CheckedCase(models.Model):
    """One case of a check, with the experiment that measures it; or the base against itself."""

    of = models.ForeignKey(Check, on_delete=models.CASCADE, related_name="cases")
    configuration = models.ForeignKey(Configuration, on_delete=models.PROTECT, related_name="+")
    experiment = models.OneToOneField(Experiment, on_delete=models.CASCADE, related_name="checked_case")
    is_control = models.BooleanField(
        default=False, help_text="The base against itself: no difference exists."
    )

    class Meta:
        ordering = ["is_control", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["of", "configuration", "is_control"], name="checked_case_once")
        ]

    def __str__(self) -> str:
        return f"{self.configuration} of {self.of_id}"
