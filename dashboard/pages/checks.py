"""The checks of a project, and one check: its answer, its rows and what people may say of it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRefresh

from dashboard import pull_requests
from dashboard.access import AuditAction, Visitor, record_action, visitor_of
from dashboard.models import Check
from dashboard.pages.paging import ROWS_PER_PAGE, requested_page
from dashboard.pages.requested_project import requested_project
from dashboard.pull_requests import CheckError, sentences
from dashboard.pull_requests.report import CheckRow, read_report
from dashboard.querysets.checks import CHECKS_OF_KEYS, checks_with_related
from dashboard.querysets.regressions import regressions_of_check


@require_safe
def checks_page(request: HttpRequest, slug: str) -> HttpResponse:
    project = requested_project(request, slug)
    listed = requested_page(request, project.checks.all(), ROWS_PER_PAGE, details=CHECKS_OF_KEYS)
    context = {"project": project, "tab": "checks", "page": listed, "checks": list(listed)}
    return render(request, "checks/checks.html", context)


@require_safe
def check_page(request: HttpRequest, pk: int) -> HttpResponse:
    check = get_object_or_404(checks_with_related(), pk=pk)
    return render(request, "checks/check.html", check_context(check))


@require_safe
def check_status_fragment(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The part that is asked for again and again; the whole page once the check is answered, or has ended."""
    check = get_object_or_404(checks_with_related(), pk=pk)
    if check.state not in Check.ACTIVE or check.answer != request.GET.get("answer", ""):
        return HttpResponseClientRefresh()
    return render(request, "checks/status.html", check_context(check))


def check_context(check: Check) -> dict[str, Any]:
    report = read_report(check)
    rows = [(row, sentences.verdict_text(row.bounded)) for row in report.shown]
    return {
        "check": check,
        "project": check.project,
        "pull_request": check.pull_request,
        "report": report,
        "active": check.state in Check.ACTIVE,
        "headline": sentences.answer_headline(report),
        "status": sentences.status_state(check),
        "next_step": sentences.next_step(check),
        "proved": list(regressions_of_check(check)),
        "causes": sentences.cause_sentences(report) if check.answer else [],
        "left_out": sentences.left_out_sentences(report),
        "rows": [row for row in rows if not is_folded(row)],
        "alike": [row for row in rows if is_folded(row)],
        "unmoved": sentences.unmoved_text(report),
        "commands": "\n".join(report.commands),
        "control": sentences.control_text(report),
        "command": sentences.repeat_command(check),
    }


def is_folded(row: tuple[CheckRow, str]) -> bool:
    """Whether it is beside what is judged, and no worse."""
    return row[1] == sentences.NO_DIFFERENCE and not sentences.is_judged(row[0].bounded)


@require_POST
def change_check(request: HttpRequest, pk: int) -> HttpResponse:
    """What its buttons say: approve, intended, again, cancel."""
    check = get_object_or_404(checks_with_related(), pk=pk)
    visitor = visitor_of(request)
    action = request.POST.get("action", "")
    try:
        if action not in RECORDED:
            raise CheckError("action: it must be approve, intended, again or cancel.")
        with transaction.atomic():
            changed = act_on_check(check, action, request.POST.get("head", ""), visitor)
            record_action(visitor, RECORDED[action], check.project, changed, head=check.head_hash)
    except CheckError as error:
        messages.error(request, str(error))
        return redirect(check)
    if action in SUCCESS_MESSAGES:
        messages.success(request, SUCCESS_MESSAGES[action])
    return redirect(changed)


RECORDED = {
    "approve": AuditAction.CHECK_APPROVED,
    "intended": AuditAction.CHECK_INTENDED,
    "again": AuditAction.CHECK_REQUESTED,
    "cancel": AuditAction.CHECK_CANCELLED,
}
SUCCESS_MESSAGES = {
    "approve": "This very head may run: its check begins.",
    "intended": "Intended: the pull request passes.",
}


def act_on_check(check: Check, action: str, head: str, visitor: Visitor) -> Check:
    """The check that it is about now: another one where it is run again. Raises CheckError."""
    person = visitor.user.get_username() if visitor.user else ""
    match action:
        case "approve":
            pull_requests.approve_check(check, head, person)
        case "intended":
            pull_requests.mark_intended(check, person, visitor.user)
        case "again":
            return pull_requests.repeat_check(check, visitor.user)
        case "cancel":
            pull_requests.cancel_check(check, person)
    return check
