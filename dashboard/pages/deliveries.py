"""The log of messages to channels, and sending one again that was given up."""

from __future__ import annotations

from itertools import islice

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from dashboard.access import Visitor, visitor_of
from dashboard.access.rules import is_offered
from dashboard.alerts.resending import ResendError
from dashboard.alerts.resending import resend_delivery as send_again
from dashboard.models import Delivery, Project
from dashboard.pages.paging import parse_whole_number, requested_page
from dashboard.querysets import regressions as regression_queries

ROWS_PER_PAGE = 40
# An empty page names so many projects whose channels can be added.
OFFERED_PROJECTS = 3


@require_safe
def deliveries_page(request: HttpRequest) -> HttpResponse:
    """All messages, or those to one `channel`."""
    channel = parse_whole_number(request, "channel", 0, 2**62)
    visible = visitor_of(request).visible_projects()
    log = regression_queries.deliveries_of_channels(visible, channel)
    listed = requested_page(request, log, ROWS_PER_PAGE, details=regression_queries.DELIVERIES_OF_KEYS)
    context = {"page": listed, "deliveries": list(listed), "of": channel}
    if not context["deliveries"]:
        context["channel_projects"] = _projects_with_editable_channels(visitor_of(request))
    return render(request, "deliveries/deliveries.html", context)


def _projects_with_editable_channels(visitor: Visitor) -> list[Project]:
    """The first projects whose channels the visitor may change."""
    projects = visitor.visible_projects().order_by("slug").iterator()
    changeable = (project for project in projects if is_offered(visitor, "project-channels", project))
    return list(islice(changeable, OFFERED_PROJECTS))


@require_POST
def resend_delivery(request: HttpRequest, pk: int) -> HttpResponse:
    """The form's field `from` is `regression` where it stands on the page of one."""
    delivery = get_object_or_404(Delivery, pk=pk)
    try:
        send_again(visitor_of(request), delivery)
        messages.success(request, "It is sent again.")
    except ResendError as error:
        messages.error(request, str(error))
    if request.POST.get("from") == "regression" and delivery.regression_id:
        return redirect("regression", delivery.regression_id)
    return redirect("deliveries")
