"""What a person says about a regression, from its page."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from dashboard.models import Regression, Triage
from dashboard.pages import regressions
from dashboard.querysets import regressions as read
from dashboard.regressions.triage import TriageError, triage

PERMISSION = "dashboard.add_triage"

DONE = {
    Triage.Action.ACKNOWLEDGE: "Acknowledged: it stays open, with your name.",
    Triage.Action.INTENDED: "Intended: the new level is the baseline from now on.",
    Triage.Action.NOT_REAL: "Not real: it counts against the precision of its series.",
    Triage.Action.WONT_FIX: "Won't fix: it has left the open ones.",
    Triage.Action.REOPEN: "Reopened.",
    Triage.Action.COMMENT: "Your comment is in the log.",
}


@require_POST
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """The form's fields: `action`, one of Triage.Action, and `comment`."""
    found = get_object_or_404(read.readable(), pk=pk)
    where = found.get_absolute_url()
    if not request.user.is_authenticated:
        # Back to the page, since what was posted here is gone after the sign-in.
        return redirect_to_login(where)
    if not request.user.has_perm(PERMISSION):
        messages.error(request, "You may look at regressions but not triage them: ask an administrator.")
        return redirect(where)
    action, comment = request.POST.get("action", ""), request.POST.get("comment", "")
    try:
        triage(found.pk, request.user, action, comment)
    except TriageError as error:
        # Shown again with what was typed: a redirect would lose it.
        return regressions.page(request, found, status=400, refused=str(error), typed=comment)
    except Regression.DoesNotExist:
        return redirect("regressions")
    messages.success(request, DONE[Triage.Action(action)])
    return redirect(where)
