"""The audit log: of a project among its settings, of the whole site on a page of its own."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.access import AuditAction
from dashboard.models import AuditEntry
from dashboard.pages.paging import requested_page
from dashboard.pages.settings.sections import settings_context
from dashboard.pages.site.sections import site_context

ROWS_PER_PAGE = 50


@require_safe
def project_audit_page(request: HttpRequest, slug: str) -> HttpResponse:
    context = settings_context(request, slug, "project-audit")
    entries = AuditEntry.objects.filter(project=context["project"])
    return render(request, "settings/audit.html", {**context, **_entries_context(request, entries)})


@require_safe
def site_audit_page(request: HttpRequest) -> HttpResponse:
    context = {**site_context(request, "site-audit"), **_entries_context(request, AuditEntry.objects.all())}
    return render(request, "site/audit.html", context)


def _entries_context(request: HttpRequest, entries: QuerySet[AuditEntry]) -> dict[str, Any]:
    """A page of the log, the newest first, of one action where the address has one."""
    action = request.GET.get("action", "")
    if action and action not in list(AuditAction):
        raise Http404("There is no action of that name.")
    if action:
        entries = entries.filter(action=action)
    related = entries.select_related("token").order_by("-at", "-id")
    page = requested_page(request, related, ROWS_PER_PAGE)
    return {
        "page": page,
        "entries": list(page),
        "action": action,
        "actions": [str(code) for code in AuditAction],
    }
