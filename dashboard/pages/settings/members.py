"""Who has which role in a project: added by the name of the account, changed, removed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.access import AccessError, visitor_of
from dashboard.access.members import add_member, change_role, remove_member
from dashboard.access.rules import is_offered
from dashboard.models import Membership
from dashboard.pages.settings.sections import settings_context

ROLES = (
    (Membership.Role.VIEWER, "reads it, also while it is private"),
    (Membership.Role.OPERATOR, "requests and cancels runs and experiments, and triages"),
    (Membership.Role.ADMIN, "changes its settings, members and tokens too"),
)


@require_http_methods(["GET", "HEAD", "POST"])
def members_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The form's fields: `name`, of an account, and `role`."""
    context = settings_context(request, slug, "project-members")
    if request.method != "POST":
        return _render_members(request, context)
    name, role = request.POST.get("name", ""), request.POST.get("role", "")
    try:
        member = add_member(visitor_of(request), context["project"], name, role)
    except AccessError as error:
        refused = {"refused": str(error), "typed": name[:150], "chosen": role}
        return _render_members(request, {**context, **refused}, status=400)
    messages.success(request, f"{member.user} is {member.role} of {slug} now.")
    return redirect("project-members", slug)


def _render_members(request: HttpRequest, context: dict[str, Any], status: int = 200) -> HttpResponse:
    members = context["project"].memberships.select_related("user").order_by("user__username")
    shown = {"members": list(members), "roles": ROLES, "typed": "", "chosen": Membership.Role.VIEWER}
    return render(request, "settings/members.html", {**shown, **context}, status=status)


@require_POST
def change_member(request: HttpRequest, slug: str, member: int) -> HttpResponse:
    """The form's fields: `role`, or `remove`."""
    row = get_object_or_404(
        Membership.objects.select_related("user", "project"), pk=member, project__slug=slug
    )
    try:
        if "remove" in request.POST:
            remove_member(visitor_of(request), row)
            messages.success(request, f"{row.user} is no member of {slug} any more.")
        else:
            role = request.POST.get("role", "")
            change_role(visitor_of(request), row, role)
            messages.success(request, f"{row.user} is {role} of {slug} now.")
    except AccessError as error:
        messages.error(request, str(error))
    # As a new one: who took the own role away may not see the page of members any more.
    visitor = replace(visitor_of(request))
    if is_offered(visitor, "project-members", row.project):
        return redirect("project-members", slug)
    return redirect("project", slug) if is_offered(visitor, "project", row.project) else redirect("overview")
