"""The API tokens of a project: made, shown once, revoked."""

from __future__ import annotations

import shlex
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.access import AccessError, Action, make_token, revoke_token, visitor_of
from dashboard.access.token_making import DEFAULT_DAYS, MOST_DAYS
from dashboard.models import ApiToken
from dashboard.pages.settings.sections import settings_context

# Of what is good for nothing any more the newest are listed.
MOST_LISTED = 100
LONGEST_NUMBER = 6
ACTIONS = (
    (Action.OPERATE, "operate", "request and cancel runs and experiments, triage"),
    (Action.ADMINISTER, "administer", "change settings and members"),
)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The form's fields: `name`, `actions`, `days`. The answer shows the token, so there is no redirect."""
    context = settings_context(request, slug, "project-tokens")
    if request.method != "POST":
        return _render_tokens(request, context)
    typed: dict[str, Any] = {
        "name": request.POST.get("name", "")[:200],
        "days": request.POST.get("days", "").strip()[:20],
        "actions": request.POST.getlist("actions"),
    }
    try:
        days = parse_days(typed["days"])
        row, token = make_token(
            visitor_of(request), context["project"], typed["name"], typed["actions"], days
        )
    except AccessError as error:
        return _render_tokens(request, {**context, "typed": typed, "refused": str(error)}, status=400)
    return _render_tokens(request, {**context, "made": row, "token": token, "command": curl_command(token)})


def parse_days(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER):
        raise AccessError(f"days: must be a whole number, 1 to {MOST_DAYS}.")
    return int(text)


def curl_command(token: str) -> str:
    """What shows that the token works, to be typed in a shell."""
    header = shlex.quote(f"Authorization: Bearer {token}")
    return f"curl -H {header} {shlex.quote(settings.PACELINE_URL + reverse('api-token'))}"


def _render_tokens(request: HttpRequest, context: dict[str, Any], status: int = 200) -> HttpResponse:
    rows = ApiToken.objects.filter(project=context["project"]).select_related("made_by")
    shown = {
        "tokens": list(rows.order_by("-created_at", "-pk")[:MOST_LISTED]),
        "actions": ACTIONS,
        "most_days": MOST_DAYS,
        "typed": {"name": "", "days": str(DEFAULT_DAYS), "actions": []},
    }
    return render(request, "settings/tokens.html", {**shown, **context}, status=status)


@require_POST
def revoke_project_token(request: HttpRequest, slug: str, token: int) -> HttpResponse:
    row = get_object_or_404(ApiToken.objects.select_related("project"), pk=token, project__slug=slug)
    if revoke_token(visitor_of(request), row):
        messages.success(request, f"The token {row.name} is revoked.")
    else:
        messages.info(request, f"The token {row.name} had been revoked already.")
    return redirect("project-tokens", slug)
