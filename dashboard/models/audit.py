from __future__ import annotations

from django.conf import settings
from django.db import models

from dashboard.models.access import ApiToken
from dashboard.models.projects import Project


class AuditEntry(models.Model):
    """Who did what, when and from where; written with what was done, and never changed."""

    class Source(models.TextChoices):
        PERSON = "person"
        TOKEN = "token"  # noqa: S105 - no token
        COMMAND = "command"
        ANONYMOUS = "anonymous"
        # A person with an account of a forge, by a comment there.
        FORGE = "forge"

    at = models.DateTimeField(auto_now_add=True)
    source = models.CharField(max_length=10, choices=Source.choices)
    # Empty once they are gone: the account's name stays.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    token = models.ForeignKey(
        ApiToken, null=True, blank=True, on_delete=models.SET_NULL, related_name="audit_entries"
    )
    account = models.CharField(
        max_length=150,
        blank=True,
        help_text="The person's name, the system's account of a command, or a forge's account.",
    )
    action = models.CharField(max_length=40, help_text="A code of dashboard.access.audit.AuditAction.")
    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.SET_NULL, related_name="audit_entries"
    )
    project_slug = models.CharField(max_length=60, blank=True, help_text="Stays when the project is deleted.")
    subject_kind = models.CharField(max_length=30, blank=True, help_text="What it was done to: run, machine.")
    subject_key = models.CharField(max_length=100, blank=True)
    details = models.JSONField(default=dict, blank=True)
    address = models.GenericIPAddressField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["-at", "-id"], name="audit_newest"),
            models.Index(fields=["action", "-at", "-id"], name="audit_by_action"),
            models.Index(fields=["project", "-at", "-id"], name="audit_of_project"),
        ]

    def __str__(self) -> str:
        return f"{self.action} by {self.account or self.source}"
