"""The checks of a project, and one check: its answer, its rows and what people may say of it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRefresh

from dashboard import pull_requests
from dashboard.models import Check, Project
from dashboard.pages.paging import requested_page
from dashboard.pages.project import ROWS_PER_PAGE
from dashboard.pull_requests import CheckError
from dashboard.pull_requests.report import read_report
from dashboard.sentences import checks as sentences
from dashboard.triggers.web import PERMISSION

RELATED = ("project", "pull_request", "base_commit", "requested_by")


@require_safe
def checks_page(request: HttpRequest, slug: str) -> HttpResponse:
    project = get_object_or_404(Project, slug=slug)
    rows = project.checks.select_related("pull_request", "base_commit", "project")
    listed = requested_page(request, rows, ROWS_PER_PAGE)
    context = {"project": project, "tab": "checks", "page": listed, "checks": list(listed)}
    return render(request, "project_checks.html", context)


@require_safe
def check_page(request: HttpRequest, pk: int) -> HttpResponse:
    check = get_object_or_404(Check.objects.select_related(*RELATED), pk=pk)
    return render(request, "check.html", check_context(check))


@require_safe
def check_status_fragment(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The part that is asked for again and again; the whole page once the check has ended."""
    check = get_object_or_404(Check.objects.select_related(*RELATED), pk=pk)
    if check.state not in Check.ACTIVE:
        return HttpResponseClientRefresh()
    return render(request, "fragments/check_status.html", check_context(check))


def check_context(check: Check) -> dict[str, Any]:
    report = read_report(check)
    return {
        "check": check,
        "project": check.project,
        "pull_request": check.pull_request,
        "report": report,
        "active": check.state in Check.ACTIVE,
        "headline": sentences.answer_headline(report),
        "status": sentences.status_state(check),
        "next_step": sentences.next_step(check),
        "causes": [sentences.cause_text(cause) for cause in report.causes] if check.answer else [],
        "left_out": sentences.left_out_sentences(check),
        "rows": [(row, sentences.verdict_text(row.bounded)) for row in report.rows],
        "commands": "\n".join(report.commands),
        "command": sentences.repeat_command(check),
    }


@require_POST
@login_required
def change_check(request: HttpRequest, pk: int) -> HttpResponse:
    """What its buttons say: approve, intended, again, cancel."""
    check = get_object_or_404(Check.objects.select_related(*RELATED), pk=pk)
    if not request.user.has_perm(PERMISSION):
        messages.error(request, "You may look at checks but not change them: ask an administrator.")
        return redirect(check)
    person = request.user.get_username()
    try:
        match request.POST.get("action"):
            case "approve":
                pull_requests.approve_check(check, request.POST.get("head", ""), person)
                messages.success(request, f"{check.head_hash[:10]} may run: its check begins.")
            case "intended":
                pull_requests.call_intended(check, person)
                messages.success(request, "Intended: the pull request passes.")
            case "again":
                return redirect(pull_requests.repeat_check(check, request.user))
            case "cancel":
                pull_requests.cancel_check(check, person)
            case _:
                raise CheckError("action: it must be approve, intended, again or cancel.")
    except CheckError as error:
        messages.error(request, str(error))
    return redirect(check)
