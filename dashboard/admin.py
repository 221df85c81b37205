"""The administrator's tables. Secrets are never shown; what states and ingest write is read-only here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from dashboard.models import (
    Case,
    Change,
    Channel,
    Commit,
    Configuration,
    Delivery,
    Experiment,
    ForgeConnection,
    Heartbeat,
    Machine,
    Metric,
    Pool,
    Project,
    Regression,
    Run,
    Series,
    Triage,
    Trigger,
)
from dashboard.secrets.stored import secrets_of
from dashboard.sentences.secrets import describe_secret

# Generic for the type checker alone: at run time the class takes no parameters.
if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


class ReadOnly(ModelAdmin):
    """A run's state moves by compare-and-swap alone: a form would write over it."""

    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        return False


def describe_secrets(row: Project | Channel | ForgeConnection) -> str:
    """Which secrets a row has, and what sets those again that can't be read any more."""
    found = [describe_secret(secret) for secret in secrets_of(row)]
    return " ".join(f"The {sentence}." for sentence in found) or "None is set."


@admin.register(Project)
class ProjectAdmin(ModelAdmin):
    list_display = ("slug", "repository", "branch", "created_at")
    search_fields = ("slug", "repository")
    exclude = ("hook_secret", "credentials")
    readonly_fields = ("secrets",)

    @admin.display(description="secrets")
    def secrets(self, project: Project) -> str:
        return describe_secrets(project)

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002
        # manage.py add_project looks whether the repository can be fetched.
        return False


@admin.register(Channel)
class ChannelAdmin(ModelAdmin):
    list_display = ("project", "kind", "address", "minimum_percent", "enabled")
    list_filter = ("kind", "enabled")
    exclude = ("secret",)
    readonly_fields = ("secrets",)

    @admin.display(description="secrets")
    def secrets(self, channel: Channel) -> str:
        return describe_secrets(channel)

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002
        # manage.py add_channel makes the secret and shows it once.
        return False


@admin.register(ForgeConnection)
class ForgeConnectionAdmin(ReadOnly):
    list_display = ("project", "kind", "repository", "api_address")
    list_filter = ("kind",)
    exclude = ("token", "webhook_secret", "open_pull_requests")
    readonly_fields = ("secrets",)

    @admin.display(description="secrets")
    def secrets(self, connection: ForgeConnection) -> str:
        return describe_secrets(connection)


@admin.register(Machine)
class MachineAdmin(ReadOnly):
    list_display = ("name", "pool", "state", "seen_at")
    list_filter = ("pool", "state")
    exclude = ("token_hash",)


@admin.register(Run)
class RunAdmin(ReadOnly):
    list_display = ("id", "commit", "case", "pool", "state", "attempt", "failure", "requested_at")
    list_filter = ("state", "failure", "configuration__pool")
    list_select_related = ("commit", "configuration__case", "configuration__pool")
    exclude = ("lease",)


@admin.register(Experiment)
class ExperimentAdmin(ReadOnly):
    list_display = ("id", "project", "purpose", "base_commit", "head_commit", "state", "verdict", "attempt")
    list_filter = ("purpose", "state", "verdict")
    list_select_related = ("project", "base_commit", "head_commit")
    exclude = ("lease",)


@admin.register(Trigger)
class TriggerAdmin(ReadOnly):
    list_display = ("id", "project", "source", "state", "detail", "received_at")
    list_filter = ("source", "state")


@admin.register(Commit)
class CommitAdmin(ReadOnly):
    list_display = ("short", "project", "branch", "position", "subject")
    list_filter = ("project",)
    search_fields = ("hash",)


@admin.register(Regression)
class RegressionAdmin(ReadOnly):
    list_display = ("id", "project", "first_bad", "state", "phase", "opened_at")
    list_filter = ("state", "project")
    list_select_related = ("project", "first_bad")


@admin.register(Triage)
class TriageAdmin(ReadOnly):
    list_display = ("id", "regression", "person", "action", "at")
    list_filter = ("action",)
    list_select_related = ("person",)


@admin.register(Delivery)
class DeliveryAdmin(ReadOnly):
    list_display = ("id", "regression", "channel", "state", "attempt", "next_attempt_at")
    list_filter = ("state",)
    list_select_related = ("regression", "channel")
    exclude = ("lease",)


@admin.register(Series)
class SeriesAdmin(ReadOnly):
    list_display = ("id", "case", "metric", "phase", "pool", "headline", "exact")
    list_filter = ("headline", "metric")
    list_select_related = ("configuration__case", "metric", "configuration__pool")


admin.site.register([Case, Change, Configuration, Heartbeat, Metric, Pool], ReadOnly)

# Providers are named by variables, tokens aren't kept, and one's sessions stand on one's own page.
admin.site.unregister(
    [
        model
        for model in (EmailAddress, SocialApp, SocialToken, UserSession)
        if admin.site.is_registered(model)
    ]
)
admin.site.unregister([Authenticator, SocialAccount])


@admin.register(Authenticator)
class AuthenticatorAdmin(ReadOnly):
    """Deleting one takes a second factor away from who has lost it."""

    list_display = ("user", "type", "created_at", "last_used_at")
    list_select_related = ("user",)
    exclude = ("data",)


@admin.register(SocialAccount)
class SocialAccountAdmin(ReadOnly):
    """Deleting one unlinks an account from the provider's."""

    list_display = ("user", "uid", "provider", "last_login")
    list_select_related = ("user",)
