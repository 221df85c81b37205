"""The administrator's tables. Secrets are never shown; what states and ingest write is read-only here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from dashboard.access import AuditAction, record_action, visitor_of
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
from dashboard.sentences.administration.secrets import describe_secret

# Generic for the type checker alone: at run time the class takes no parameters.
if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


class Audited(ModelAdmin):
    """What is changed in these tables stands in the audit log."""

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        self.record_change(request, obj, "added")
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        fields = [name for part in message if isinstance(part, dict) for name in changed_fields(part)]
        self.record_change(request, obj, "changed", fields=fields)
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        for row in queryset:
            self.record_change(request, row, "deleted")
        return super().log_deletions(request, queryset)

    def record_change(self, request: HttpRequest, row: Model, change: str, **about: Any) -> None:
        project = row if isinstance(row, Project) else getattr(row, "project", None)
        if not isinstance(project, Project) or (project is row and change == "deleted"):
            # Of what is about to be deleted its name stays.
            project = None
        about |= {"change": change, "name": str(row)[:200]}
        record_action(visitor_of(request), AuditAction.TABLE_CHANGED, project, row, **about)


def changed_fields(part: dict[str, Any]) -> list[str]:
    """The names of the fields in a part of Django's own message about a change."""
    return [str(name) for name in (part.get("changed") or {}).get("fields", [])]


class ReadOnly(Audited):
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
class ProjectAdmin(Audited):
    list_display = ("slug", "repository", "branch", "created_at")
    search_fields = ("slug", "repository")
    exclude = ("hook_secret", "credentials")
    # Its settings rename it, and keep what the name of before leads to. There too a repository is tested, and
    # a manifest and a policy are checked before they count: whoever sets these decides what hosts run.
    readonly_fields = ("slug", "repository", "branch", "manifest", "policy", "secrets")

    @admin.display(description="secrets")
    def secrets(self, project: Project) -> str:
        return describe_secrets(project)

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002
        # manage.py add_project looks whether the repository can be fetched.
        return False


@admin.register(Channel)
class ChannelAdmin(Audited):
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


class AuditedUserAdmin(Audited, UserAdmin):  # type: ignore[type-arg]
    """Accounts, and the permissions of Django that they have on the whole site."""


class AuditedGroupAdmin(Audited, GroupAdmin):
    """Permissions that several accounts share."""


admin.site.unregister([User, Group])
admin.site.register(User, AuditedUserAdmin)
admin.site.register(Group, AuditedGroupAdmin)
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
