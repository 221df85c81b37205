"""What a person says about a regression, from its page."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from dashboard import alerts
from dashboard.access import AuditAction, record_action, visitor_of
from dashboard.models import Regression, Triage
from dashboard.pages.regressions.regression import render_regression, requested_regression
from dashboard.querysets import regressions as regression_queries
from dashboard.regressions.triage import TriageError, triage_regression

SUCCESS_MESSAGES = {
    Triage.Action.ACKNOWLEDGE: "Acknowledged: it stays open, with your name.",
    Triage.Action.INTENDED: "Intended: the new level is the baseline from now on.",
    Triage.Action.NOT_REAL: "Not real: it counts against the precision of its series.",
    Triage.Action.WONT_FIX: "Won't fix: it has left the open ones.",
    Triage.Action.REOPEN: "Reopened.",
    Triage.Action.COMMENT: "Your comment is in the log.",
}


@require_POST
def submit_triage(request: HttpRequest, pk: int) -> HttpResponse:
    """The form's fields: `action`, one of Triage.Action, `comment`, and `seen`, what was said before."""
    regression = requested_regression(pk)
    address = regression.get_absolute_url()
    action, comment = request.POST.get("action", ""), request.POST.get("comment", "")
    try:
        triage_regression(regression.pk, visitor_of(request), action, comment, seen=request.POST.get("seen"))
    except TriageError as error:
        # Shown again with what was typed: a redirect would lose it.
        refused = str(error)
        return render_regression(request, regression, status=400, refused=refused, typed=comment)
    except Regression.DoesNotExist:
        return redirect("regressions")
    confirmation = SUCCESS_MESSAGES[Triage.Action(action)]
    if action == Triage.Action.ACKNOWLEDGE and regression.recovered_by_id:
        confirmation = "Acknowledged, with your name: it has recovered."
    messages.success(request, confirmation)
    # The form stays where it was, and has the focus.
    return redirect(f"{address}#triage")


@require_POST
def submit_snooze(request: HttpRequest, pk: int) -> HttpResponse:
    """The form's fields: `action` (snooze, end), `until` and `growth`."""
    regression = get_object_or_404(regression_queries.regressions_with_related(), pk=pk)
    address = regression.get_absolute_url()
    if request.POST.get("action") == "end":
        with transaction.atomic():
            alerts.end_snooze(regression)
            record_snooze(request, regression, "ended")
        messages.success(request, "The snooze has ended: its channels are notified of it again.")
    else:
        snooze_as_asked(request, regression)
    return redirect(f"{address}#snooze")


def snooze_as_asked(request: HttpRequest, regression: Regression) -> None:
    until, growth = request.POST.get("until", ""), request.POST.get("growth", "")
    try:
        with transaction.atomic():
            alerts.snooze_regression(regression, request.user, until, growth)
            record_snooze(request, regression, "begun")
    except alerts.ChannelError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, "Snoozed: no channel is notified of it until then.")


def record_snooze(request: HttpRequest, regression: Regression, change: str) -> None:
    record_action(
        visitor_of(request), AuditAction.REGRESSION_SNOOZED, regression.project, regression, change=change
    )
