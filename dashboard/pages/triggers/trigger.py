"""Asking for runs, and what became of what was asked for."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRefresh

from dashboard import cancelling
from dashboard.access import visitor_of
from dashboard.models import Project, Run, Trigger
from dashboard.pages.requested_project import requested_project
from dashboard.pages.triggers.form import expect_cases, form_query, trigger_form_context
from dashboard.project_setup.duration_sentences import remaining_sentence
from dashboard.querysets import projects, runs
from dashboard.querysets.deferred_joins import read_with_details
from dashboard.querysets.durations import newest_durations
from dashboard.sentences.formatting.numbers import format_count
from dashboard.triggers import create_web_trigger
from dashboard.triggers.receiving import TriggerError
from dashboard.triggers.request_validation import validate_request
from dashboard.triggers.web import chosen_revisions

MOST_RUNS = 40


@require_http_methods(["GET", "HEAD", "POST"])
def request_runs(request: HttpRequest, slug: str) -> HttpResponse:
    """The form's fields: `which` (newest, commit, range, last) and the field of that name, `benchmarks`.

    What is refused is shown again with what was typed; the address fills the form in too.
    """
    project = requested_project(request, slug)
    if request.method != "POST":
        return _render_form(request, project, request.GET)
    try:
        revisions, benchmarks = chosen_revisions(request.POST), request.POST.getlist("benchmarks")
        validate_request(project, revisions, benchmarks)
        trigger = create_web_trigger(project, visitor_of(request), revisions, benchmarks)
    except TriggerError as error:
        return _render_form(request, project, request.POST, str(error))
    messages.success(request, "Requested. The runs appear here once the repository has been read.")
    return redirect("project-trigger", project.slug, trigger.pk)


def _render_form(request: HttpRequest, project: Project, typed: QueryDict, refused: str = "") -> HttpResponse:
    context = {
        "project": project,
        "tab": "triggers",
        "refused": refused,
        **trigger_form_context(project, typed),
    }
    return render(request, "triggers/measure.html", context, status=400 if refused else 200)


@require_safe
def trigger_page(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    trigger = _find_trigger(slug, pk)
    return render(request, "triggers/trigger.html", {"tab": "triggers", **_status_context(trigger)})


@require_safe
def trigger_status_fragment(request: HttpRequest, slug: str, pk: int) -> HttpResponseBase:
    """What became of it, asked for again and again until all its runs have ended."""
    context = _status_context(_find_trigger(slug, pk))
    if not context["live"]:
        return HttpResponseClientRefresh()
    return render(request, "triggers/status.html", context)


@require_POST
def cancel_trigger(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    try:
        ended = cancelling.cancel_trigger(visitor_of(request), _find_trigger(slug, pk))
    except cancelling.NotCancellable as error:
        messages.info(request, str(error))
    else:
        success_text = f"{format_count(ended, 'run')} cancelled."
        # What a push had asked for before somebody else did isn't theirs to cancel.
        messages.success(
            request, success_text if ended else "Nobody waits for it now: it is measured in its turn."
        )
    return redirect("project-trigger", slug, pk)


def _find_trigger(slug: str, pk: int) -> Trigger:
    rows = Trigger.objects.select_related("project", "requested_by").defer("project__manifest")
    return get_object_or_404(rows, pk=pk, project__slug=slug)


def _status_context(trigger: Trigger) -> dict[str, Any]:
    ended, all_runs = runs.count_trigger_runs(trigger)
    listed = list(runs.trigger_runs(trigger)[:MOST_RUNS])
    received = trigger.state == Trigger.State.RECEIVED
    resolved = trigger.state == Trigger.State.RESOLVED
    return {
        "trigger": trigger,
        "project": trigger.project,
        "asking": form_query(trigger),
        "received": received,
        "runs": listed,
        "ended": ended,
        "all_runs": all_runs,
        "live": received or ended < all_runs,
        "remaining": _remaining_time(trigger, listed) if ended < all_runs <= MOST_RUNS else "",
        "earlier": _runs_of_commit(trigger) if resolved and not all_runs else [],
    }


def _remaining_time(trigger: Trigger, listed: list[Run]) -> str:
    durations = newest_durations(Project.objects.filter(pk=trigger.project_id))
    waiting = [str(run.case) for run in listed if run.state not in Run.TERMINAL]
    return remaining_sentence(expect_cases(waiting, durations))


def _runs_of_commit(trigger: Trigger) -> list[Run]:
    """Of a trigger that asked for nothing new: the newest runs of its commit."""
    commit = projects.named_commit(trigger.project, trigger.revisions)
    if commit is None:
        return []
    newest = runs.project_runs(trigger.project).filter(commit=commit)[:MOST_RUNS]
    return read_with_details(runs.RUNS_OF_KEYS, newest)
