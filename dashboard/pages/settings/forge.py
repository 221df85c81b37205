"""The connection of a project with its forge: made, tried, given a new secret, and forgotten."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.access import visitor_of
from dashboard.forges.connecting import (
    ConnectingError,
    ConnectionRequest,
    check_api_address,
    make_webhook_secret,
    try_connection,
)
from dashboard.forges.errors import ForgeAnswerError
from dashboard.forges.events import EVENT_NAMES, ForgeKind
from dashboard.forges.forge import forge_of
from dashboard.models import ForgeConnection, Project
from dashboard.pages.form_fields import read_text
from dashboard.pages.settings.sections import settings_context
from dashboard.project_setup.changing import record_forge
from dashboard.secrets import is_lost

KIND_LABELS = {
    ForgeKind.GITHUB: "GitHub",
    ForgeKind.GITLAB: "GitLab",
    ForgeKind.GITEA: "Gitea or Forgejo",
    ForgeKind.BITBUCKET: "Bitbucket",
}
FIELDS = ("kind", "repository", "api_address", "token", "app_id", "installation")
LONGEST = 30_000
SECTION = "project-forge"


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def forge_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The form's fields: FIELDS, and `action`: connect, renew-secret or disconnect."""
    context = settings_context(request, slug, SECTION)
    project: Project = context["project"]
    connection = ForgeConnection.objects.select_related("project").filter(project=project).first()
    if request.method != "POST":
        return render_forge(request, context, connection, typed_of(connection))
    action = request.POST.get("action", "")
    if action == "connect":
        return connect_forge(request, context, connection)
    if connection is None:
        messages.error(request, "It isn't connected with any forge.")
        return redirect(SECTION, slug)
    if action == "renew-secret":
        return renew_secret(request, context, connection)
    if action == "disconnect":
        with transaction.atomic():
            record_forge(visitor_of(request), connection, "disconnected")
            connection.delete()
        messages.success(request, "Disconnected: delete its webhook and its token on the forge too.")
    else:
        messages.error(request, "action: must be one of connect, renew-secret, disconnect.")
    return redirect(SECTION, slug)


def connect_forge(
    request: HttpRequest, context: dict[str, Any], connection: ForgeConnection | None
) -> HttpResponse:
    """Store it once the forge has answered. A new secret is shown by the answer, so there is no redirect."""
    typed = {name: read_text(request.POST, name).strip()[:LONGEST] for name in FIELDS}
    try:
        made, new = try_connection(context["project"], read_wanted(typed, connection))
    except ConnectingError as error:
        return render_forge(request, context, connection, typed, error)
    with transaction.atomic():
        made.save()
        record_forge(visitor_of(request), made, "connected")
    if not new:
        messages.success(request, f"Connected with {made}.")
        return redirect(SECTION, context["project"].slug)
    return render_forge(request, context, made, typed_of(made), secret=made.webhook_secret)


def read_wanted(typed: dict[str, str], connection: ForgeConnection | None) -> ConnectionRequest:
    """Raises ConnectingError. An empty token is the one that is kept, for the same repository: it may let in
    to others, which whoever else administers the project has no part in."""
    if typed["kind"] not in KIND_LABELS:
        raise ConnectingError("Choose which forge it is.", "kind")
    token = typed["token"].replace("\r\n", "\n")
    if not token and connection is not None:
        address = check_api_address(ForgeKind(typed["kind"]), typed["api_address"])
        wanted = {**typed, "api_address": address}
        if any(wanted[name] != getattr(connection, name) for name in FIELDS if name != "token"):
            raise ConnectingError(
                "Give the token again: it is kept for the repository and the forge of before alone.", "token"
            )
        token = connection.token
    return ConnectionRequest(
        kind=typed["kind"],
        repository=typed["repository"],
        token=token,
        api_address=typed["api_address"],
        app_id=typed["app_id"],
        installation=typed["installation"],
    )


def renew_secret(request: HttpRequest, context: dict[str, Any], connection: ForgeConnection) -> HttpResponse:
    connection.webhook_secret = make_webhook_secret()
    with transaction.atomic():
        connection.save(update_fields=["webhook_secret"])
        record_forge(visitor_of(request), connection, "renewed")
    return render_forge(request, context, connection, typed_of(connection), secret=connection.webhook_secret)


def typed_of(connection: ForgeConnection | None) -> dict[str, str]:
    if connection is None:
        return {**dict.fromkeys(FIELDS, ""), "kind": ForgeKind.GITHUB}
    return {name: str(getattr(connection, name)) for name in FIELDS}


def render_forge(
    request: HttpRequest,
    context: dict[str, Any],
    connection: ForgeConnection | None,
    typed: dict[str, str],
    error: ConnectingError | None = None,
    secret: str = "",
) -> HttpResponse:
    errors = {**dict.fromkeys((*FIELDS, ""), ""), **({error.field: str(error)} if error else {})}
    shown = {
        **context,
        "connection": connection,
        "kinds": list(KIND_LABELS.items()),
        # A secret isn't sent back, not even one that was typed just now.
        "typed": {**typed, "token": ""},
        "errors": errors,
        "refused": errors[""],
        "secret": secret,
        "token_lost": connection is not None and is_lost(connection.token),
        "webhook": settings.PACELINE_URL + reverse("forge-hook", args=[context["project"].slug]),
        "events": EVENT_NAMES[ForgeKind(connection.kind)] if connection else "",
        "label": KIND_LABELS[ForgeKind(connection.kind)] if connection else "",
        "last_heard": connection and connection.project.forge_deliveries.order_by("-received_at").first(),
    }
    return render(request, "settings/forge.html", shown, status=400 if error else 200)


@never_cache
@require_POST
def forge_test_fragment(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask the forge with the token that is kept, and say how it went."""
    connection = ForgeConnection.objects.select_related("project").filter(project__slug=slug).first()
    refused = "It isn't connected with any forge."
    if connection is not None:
        try:
            forge_of(connection).check_access()
            refused = ""
        except ForgeAnswerError as error:
            refused = str(error)
    return render(request, "settings/forge_test.html", {"refused": refused})
