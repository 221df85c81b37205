from __future__ import annotations

from django.conf import settings
from django.db import models

from dashboard.models.projects import Project
from dashboard.repositories import LONGEST_BRANCH, join_credentials
from dashboard.secrets import EncryptedField


class RepositoryTest(models.Model):
    """Whether a repository can be fetched, and what its newest commit would have measured. Kept for a day."""

    class Outcome(models.TextChoices):
        """The first one is good; each has a sentence in project_setup/repository_test_sentences.py."""

        READABLE = "readable"
        INTERNAL_ADDRESS = "internal address"
        NO_HOST = "no host"
        NO_ANSWER = "no answer"
        CREDENTIALS_MISSING = "credentials missing"
        CREDENTIALS_REFUSED = "credentials refused"
        KEY_REFUSED = "key refused"
        HOST_KEY = "host key"
        CERTIFICATE = "certificate"
        REDIRECTED = "redirected"
        NOT_FOUND = "not found"
        EMPTY = "empty"
        NO_BRANCH = "no branch"
        TOO_SLOW = "too slow"
        OTHER = "other"

    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    project = models.ForeignKey(
        Project,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="repository_tests",
        help_text="Whose repository is to change, or is read again; empty: of a project that is to be added.",
    )
    repository = models.CharField(max_length=4096)
    credentials = EncryptedField(blank=True, default="", help_text="As those of the project.")
    branch = models.CharField(
        max_length=LONGEST_BRANCH, blank=True, help_text="Empty: what HEAD names there."
    )
    outcome = models.CharField(
        max_length=30, choices=Outcome.choices, blank=True, help_text="Empty while it is under way."
    )
    facts = models.JSONField(
        default=dict,
        blank=True,
        help_text="What was found: branches, the newest commit, its manifest, the reason that git gave.",
    )
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    started_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.repository

    @property
    def is_readable(self) -> bool:
        return self.outcome == self.Outcome.READABLE

    @property
    def fetch_address(self) -> str:
        """With its credentials: for git alone, never shown or logged."""
        return join_credentials(self.repository, self.credentials)
