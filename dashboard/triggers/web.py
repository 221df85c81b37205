"""The button of the project page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from dashboard.access import Visitor, visitor_of
from dashboard.models import Project, Trigger
from dashboard.triggers.receiving import TriggerError, parse_revisions, receive_trigger


def from_web(
    project: Project, visitor: Visitor, revisions: dict[str, Any], benchmarks: Iterable[str] = ()
) -> Trigger:
    """A trigger of a person; `revisions` come from `parse_revisions`. Raises TriggerError."""
    source = Trigger.Source.WEB
    return receive_trigger(project, source, revisions, benchmarks, user=visitor.user, actor=visitor)


@require_POST
def request_runs(request: HttpRequest, slug: str) -> HttpResponse:
    """The form's fields: `which` (newest, commit, range, last) and the field of that name, `benchmarks`."""
    project = get_object_or_404(Project, slug=slug)
    try:
        revisions = chosen_revisions(request.POST)
        from_web(project, visitor_of(request), revisions, request.POST.getlist("benchmarks"))
        messages.success(request, "Requested: the runs appear here once the repository has been read.")
    except TriggerError as error:
        messages.error(request, str(error))
    return redirect("project", slug)


def chosen_revisions(form: QueryDict) -> dict[str, Any]:
    """The revisions that a form asks for. Fields beside the chosen one keep what somebody once typed."""
    which = form.get("which") or "newest"
    if which == "newest":
        return {}
    value = form.get(which, "").strip()
    if which not in {"commit", "range", "last"} or not value:
        raise TriggerError("Say which commits to measure: the newest, one commit, a range or the last few.")
    return parse_revisions(**{"span" if which == "range" else which: value})
