"""Who may read a project."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from dashboard.access import AuditAction, record_action, visitor_of
from dashboard.models import Project
from dashboard.pages.settings_sections import settings_context

Visibility = Project.Visibility

SAVED = {
    Visibility.PUBLIC: "Everybody who reaches this site may read the project now.",
    Visibility.PRIVATE: "Its members alone may read the project now.",
}


@require_http_methods(["GET", "HEAD", "POST"])
def visibility_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The form's field: `visibility`."""
    context = settings_context(request, slug, "project-settings")
    if request.method != "POST":
        return render(request, "settings_visibility.html", context)
    wanted = request.POST.get("visibility", "")
    if wanted not in Visibility.values:
        refused = f"visibility: must be one of {', '.join(Visibility.values)}."
        return render(request, "settings_visibility.html", {**context, "refused": refused}, status=400)
    project: Project = context["project"]
    with transaction.atomic():
        changed = Project.objects.filter(pk=project.pk).exclude(visibility=wanted).update(visibility=wanted)
        if changed:
            about = {"fields": ["visibility"], "values": {"visibility": wanted}}
            record_action(visitor_of(request), AuditAction.SETTINGS_CHANGED, project, project, **about)
    messages.success(request, SAVED[Visibility(wanted)])
    return redirect("project-settings", slug)
