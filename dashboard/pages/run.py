"""One run: how it goes, what it measured, and under what circumstances."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRefresh

from dashboard import runs as states
from dashboard.models import Run, RunLog
from dashboard.pages import run_metrics, run_profile, run_scaling
from dashboard.pages import run_parts as parts
from dashboard.pages.paging import whole_number
from dashboard.querysets import runs as read
from dashboard.querysets import series

# Whoever may request runs may cancel them.
PERMISSION = "dashboard.add_trigger"
# The warning whose sentence the page's own table of limits says better.
SAID_BY_LIMITS = "limit_crossed"


@require_safe
def run(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(read.whole(), pk=pk)
    document = read.document(found) if found.state == Run.State.DONE else None
    context = {**_common(found), "log": read.log_tail(found), "document": document}
    if document:
        context |= _measured(request, found, document)
    elif found.origin == Run.Origin.IMPORTED:
        context["points"] = series.of_run(found.pk)
    return render(request, "run.html", context)


def _measured(request: HttpRequest, found: Run, document: parts.Json) -> dict[str, Any]:
    points = list(series.of_run(found.pk))
    measured = run_metrics.metric_parts(document, points, series.before(found, points))
    links = measured["exponent_series"]
    return {
        **measured,
        **parts.phase_parts(document),
        **parts.repetition_parts(found, document, whole_number(request, "repetition", 0, 10_000)),
        **parts.process_parts(document),
        **run_scaling.scaling_parts(document, links),
        **run_scaling.job_parts(document),
        **run_scaling.limit_parts(document, links),
        **run_profile.profile_parts(document),
        **_frames(request, document),
        **parts.environment_parts(document),
        **parts.protocol_parts(document),
        "warnings": [row for row in document.get("warnings") or [] if row["code"] != SAID_BY_LIMITS],
        "harness": document.get("harness") or {},
    }


def _frames(request: HttpRequest, document: parts.Json) -> dict[str, Any]:
    number = whole_number(request, "frame", 0, 10_000_000)
    query = request.GET.copy()
    query.pop("frame", None)
    link = f"?{query.urlencode()}&frame=" if query else "?frame="
    by_calls = request.GET.get("width") == "calls"
    return {"frame_link": link, **run_profile.frame_parts(document, number, by_calls)}


@require_safe
def run_frames(request: HttpRequest, pk: int) -> HttpResponse:
    """The drawing of a profile's stacks alone, below another frame; the address becomes the page's."""
    found = get_object_or_404(Run, pk=pk)
    document = read.document(found)
    context = {"run": found, "zoomed": True, **(_frames(request, document) if document else {})}
    answer = render(request, "fragments/run_frames.html", context)
    answer["HX-Push-Url"] = f"{found.get_absolute_url()}?{request.GET.urlencode()}"
    return answer


@require_safe
def run_status(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The part of the page that is asked for again and again while the run is active."""
    found = get_object_or_404(read.whole(), pk=pk)
    if found.state in Run.TERMINAL:
        # There is more to show now than this part: the whole page is loaded again.
        return HttpResponseClientRefresh()
    return render(request, "fragments/run_status.html", {**_common(found), "log": read.log_tail(found)})


@require_safe
def run_log(_: HttpRequest, pk: int) -> HttpResponse:
    """The whole log as plain text: a browser must not read it as a page."""
    log = get_object_or_404(RunLog, run=pk)
    return HttpResponse(log.text, content_type="text/plain; charset=utf-8")


@require_POST
@login_required
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(Run, pk=pk)
    if not request.user.has_perm(PERMISSION):
        messages.error(request, "You may look at runs but not cancel them: ask an administrator.")
    elif found.state in Run.TERMINAL:
        messages.info(request, f"Run {pk} had already ended: it is {found.state}.")
    else:
        states.cancel(pk, request.user.get_username())
        messages.success(request, f"Run {pk} is cancelled.")
    return redirect("run", pk)


def _common(found: Run) -> dict[str, Any]:
    return {
        "run": found,
        "project": found.case.project,
        "active": found.state not in Run.TERMINAL,
        "command": parts.command(found),
        "stages": _stages(found),
    }


def _stages(found: Run) -> list[tuple[str, str]]:
    """(state, past | now | ahead) of the way that a run goes; empty once it has ended."""
    way = [
        Run.State.REQUESTED,
        Run.State.CLAIMED,
        Run.State.PREPARING,
        Run.State.MEASURING,
        Run.State.STORING,
    ]
    if found.state not in way:
        return []
    now = way.index(Run.State(found.state))
    return [
        (state.value, "now" if place == now else "past" if place < now else "ahead")
        for place, state in enumerate(way)
    ]
