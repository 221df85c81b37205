"""The git hook of a project: how it is installed, what it reported last, and its secret."""

from __future__ import annotations

import shlex
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from dashboard.access import visitor_of
from dashboard.models import Project, Trigger
from dashboard.pages.settings.sections import settings_context
from dashboard.project_setup.allowed_repositories import is_local
from dashboard.project_setup.changing import renew_hook_secret


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def hook_page(request: HttpRequest, slug: str) -> HttpResponse:
    """POST makes a new secret. The answer shows it, so there is no redirect."""
    context = settings_context(request, slug, "project-hook")
    project: Project = context["project"]
    secret = renew_hook_secret(visitor_of(request), project) if request.method == "POST" else ""
    return render(request, "settings/hook.html", {**context, **hook_context(project), "secret": secret})


def hook_context(project: Project) -> dict[str, Any]:
    last = project.triggers.filter(source=Trigger.Source.HOOK).order_by("-received_at").first()
    return {
        "command": f"python manage.py install_hook {shlex.quote(project.slug)}"
        + ("" if is_local(project.repository) else " /path/to/repository"),
        "address": settings.PACELINE_URL + reverse("hook", args=[project.slug]),
        "last_push": last,
    }
