from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from dashboard.models.projects import Project


class Action(models.TextChoices):
    """What somebody may do: in a project, or, the last one, on the whole site."""

    VIEW = "view"
    OPERATE = "operate"
    ADMINISTER = "administer"
    ADMINISTER_SITE = "administer site"


PROJECT_ACTIONS = (Action.VIEW, Action.OPERATE, Action.ADMINISTER)


class Membership(models.Model):
    """A person's role in a project."""

    class Role(models.TextChoices):
        VIEWER = "viewer"
        OPERATOR = "operator"
        ADMIN = "admin"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "user"], name="member_once_per_project")]

    def __str__(self) -> str:
        return f"{self.user} as {self.role} of {self.project}"


class ApiToken(models.Model):
    """Lets a script do in one project what its maker may; kept as a hash alone."""

    name = models.CharField(max_length=100)
    token_hash = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the token.")
    prefix = models.CharField(max_length=12, help_text="Its first letters, to tell tokens apart.")
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="api_tokens")
    actions = ArrayField(
        models.CharField(max_length=10, choices=[(action.value, action.label) for action in PROJECT_ACTIONS]),
        help_text="What it may do, as far as its maker may.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True, help_text="Written once a minute at most.")
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "API token"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def state(self) -> str:
        """Which of active, expired and revoked it is."""
        if self.revoked_at is not None:
            return "revoked"
        return "active" if self.expires_at > timezone.now() else "expired"
