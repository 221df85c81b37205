from __future__ import annotations

from django.db import models

from dashboard.models.projects import Project
from dashboard.secrets import EncryptedField


class ForgeConnection(models.Model):
    """The repository of a project on a forge: where its API is, and the secrets of both directions."""

    class Kind(models.TextChoices):
        GITHUB = "github"
        GITLAB = "gitlab"
        GITEA = "gitea"
        BITBUCKET = "bitbucket"

    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="forge")
    kind = models.CharField(max_length=20, choices=Kind.choices)
    api_address = models.CharField(max_length=500, help_text="The API's, without a slash at its end.")
    repository = models.CharField(max_length=300, help_text="owner/name, as the forge spells it.")
    token = EncryptedField(
        blank=True, default="", help_text="Of the account that answers; of a GitHub App its private key."
    )
    webhook_secret = EncryptedField(blank=True, default="", help_text="Signs what the forge sends.")
    app_id = models.CharField(max_length=20, blank=True, help_text="Of a GitHub App, where one answers.")
    installation = models.CharField(
        max_length=20, blank=True, help_text="The app's installation; empty: GitHub is asked for it."
    )
    open_pull_requests = models.JSONField(
        default=dict, blank=True, help_text="Those that the last poll saw: number -> what it said of each."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.repository} on {self.kind}"


class ForgeDelivery(models.Model):
    """A request of a forge that had its effect: it has none a second time."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="forge_deliveries")
    identity = models.CharField(max_length=100)
    received_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "forge deliveries"
        constraints = [
            models.UniqueConstraint(fields=["project", "identity"], name="forge_delivery_once_per_project")
        ]
        indexes = [models.Index(fields=["received_at"], name="forge_delivery_age")]

    def __str__(self) -> str:
        return self.identity


class RepositoryPoll(models.Model):
    """How the site looks for new commits of a project by itself, where no hook tells it."""

    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="poll")
    tip = models.CharField(max_length=64, blank=True, help_text="The branch's newest commit then.")
    refs = models.JSONField(
        default=dict, blank=True, help_text="Other branches and tags that the policy measures, as they were."
    )
    next_at = models.DateTimeField(help_text="No look before this.")
    failures = models.PositiveIntegerField(default=0, help_text="Looks in a row that failed.")
    # The forge is asked for pull requests apart: what keeps it from answering holds up no commit.
    forge_next_at = models.DateTimeField(null=True, blank=True, help_text="It isn't asked before this.")
    forge_failures = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"poll of {self.project}"
