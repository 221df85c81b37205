"""Removing a project: what goes with it is said, and its name has to be typed."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from dashboard.access import visitor_of
from dashboard.models import Project
from dashboard.pages.settings.sections import settings_context
from dashboard.project_setup.errors import SetupError
from dashboard.project_setup.removal import remove_project
from dashboard.querysets import projects as project_queries


@require_http_methods(["GET", "HEAD", "POST"])
def removal_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The form's field: `slug`."""
    context = settings_context(request, slug, "project-removal")
    project: Project = context["project"]
    if request.method != "POST":
        return render_removal(request, context)
    try:
        remove_project(visitor_of(request), project, request.POST.get("slug", ""))
    except SetupError as error:
        return render_removal(request, context, str(error))
    messages.success(request, f"{slug} is removed. Its rows are being deleted, which may take some minutes.")
    return redirect("overview")


def render_removal(request: HttpRequest, context: dict[str, Any], refused: str = "") -> HttpResponse:
    shown = {**context, "kept": project_queries.count_rows(context["project"]), "refused": refused}
    return render(request, "settings/removal.html", shown, status=400 if refused else 200)
