"""One run: how it goes, what it measured, and under what circumstances."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRefresh

from dashboard import cancelling
from dashboard.access import visitor_of
from dashboard.access.rules import is_offered
from dashboard.models import Run, RunLog
from dashboard.pages.experiments.links import run_links
from dashboard.pages.link_previews import preview_of
from dashboard.pages.paging import parse_whole_number
from dashboard.pages.requested_project import requested_project
from dashboard.pages.runs.costs import costs_context
from dashboard.pages.runs.device import device_context
from dashboard.pages.runs.document_parts import (
    Json,
    environment_context,
    phases_context,
    processes_context,
    protocol_context,
    repetition_context,
    reproduction_command,
)
from dashboard.pages.runs.metrics import metrics_context
from dashboard.pages.runs.profile import icicle_context, profile_context
from dashboard.pages.runs.ranks import loaders_context, ranks_context, step_context
from dashboard.pages.runs.scaling import job_context, limits_context, scaling_context
from dashboard.pages.runs.summary import summary_context
from dashboard.project_setup.duration_sentences import run_end_sentence
from dashboard.project_setup.expected_durations import seconds_left_by_progress
from dashboard.querysets import run_points
from dashboard.querysets import runs as run_queries
from dashboard.querysets.durations import newest_duration
from dashboard.sentences.formatting.metric_labels import metric_sort_key
from dashboard.sentences.formatting.numbers import format_count

# The warning that the page leaves out: its table of limits says more.
LIMIT_WARNING = "limit_crossed"
# Of a run without a document so many values are seen at once, its headlines first.
SHOWN_VALUES = 12


def _find_run(pk: int) -> Run:
    run = run_queries.find_for_page(pk)
    if run is None:
        raise Http404("There is no run of that number.")
    return run


@require_safe
def run_page(request: HttpRequest, pk: int) -> HttpResponse:
    run = _find_run(pk)
    document = run_queries.document_without_telemetry(run) if run.state == Run.State.DONE else None
    context = {**_common_context(run, document), "log": run_queries.read_log_tail(run), "document": document}
    remeasured = run.tainted and run.origin == Run.Origin.MEASURED
    context["again"] = run_queries.next_measurement(run) if remeasured else None
    if document:
        context |= _document_context(request, run, document)
        # What was posted can't be measured here.
        measurable = run.origin != Run.Origin.POSTED
        if measurable and is_offered(visitor_of(request), "experiment-new", run.case.project):
            context["comparisons"] = run_links(run, context["previous"])
    elif run.state == Run.State.DONE:  # It was imported, or has become too old for its document.
        points = sorted(run_points.points_of_run(run.pk), key=_listed_place)
        context |= {
            "points": points[:SHOWN_VALUES],
            "other_points": points[SHOWN_VALUES:],
            "points_have_intervals": any(point.low is not None for point in points),
        }
    context["preview"] = preview_of(run)
    return render(request, "runs/run.html", context)


def _listed_place(point: run_points.RunPoint) -> tuple[bool, tuple[int, str, str]]:
    """Headlines first, as among the metrics of a document."""
    return not point.headline, metric_sort_key(point.metric, point.phase)


def _document_context(request: HttpRequest, run: Run, document: Json) -> dict[str, Any]:
    points = run_points.points_of_run(run.pk)
    before, after = run_points.neighbouring_runs(run, points)
    previous = run_points.read_previous(before) if before else None
    metrics = metrics_context(document, points, previous)
    warnings = [row for row in document.get("warnings") or [] if row["code"] != LIMIT_WARNING]
    links = metrics["exponent_series"]
    return {
        **metrics,
        **phases_context(document),
        **_repetition_context(request, run, document),
        **processes_context(document),
        **ranks_context(document),
        **loaders_context(document),
        **step_context(document),
        **scaling_context(document, links),
        **job_context(document),
        **limits_context(document, links),
        **profile_context(document),
        **device_context(document),
        **_frames_context(request, document),
        **costs_context(run),
        **environment_context(document),
        **protocol_context(document),
        **summary_context(run, metrics, document, warnings),
        "next_run": after,
        "harness": document.get("harness") or {},
    }


def _repetition_context(request: HttpRequest, run: Run, document: Json) -> dict[str, Any]:
    """`repetition` is the number of one of them, or `all`: the first before the others."""
    overlaid = request.GET.get("repetition") == "all"
    index = 0 if overlaid else parse_whole_number(request, "repetition", 0, 10_000)
    return repetition_context(run, document, index, overlaid)


def _frames_context(request: HttpRequest, document: Json) -> dict[str, Any]:
    number = parse_whole_number(request, "frame", 0, 10_000_000)
    query = request.GET.copy()
    query.pop("frame", None)
    link = f"?{query.urlencode()}&frame=" if query else "?frame="
    by_calls = request.GET.get("width") == "calls"
    return {"frame_link": link, **icicle_context(document, number, by_calls)}


@require_safe
def run_frames_fragment(request: HttpRequest, pk: int) -> HttpResponse:
    """The drawing of a profile's stacks alone, below another frame; the address becomes the page's."""
    run = get_object_or_404(Run, pk=pk)
    document = run_queries.document_without_telemetry(run)
    context = {"run": run, "zoomed": True, **(_frames_context(request, document) if document else {})}
    response = render(request, "runs/profile/flame_graph.html", context)
    response["HX-Push-Url"] = f"{run.get_absolute_url()}?{request.GET.urlencode()}"
    return response


@require_safe
def run_status_fragment(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The part of the page that is asked for again and again while the run is active."""
    run = _find_run(pk)
    if run.state in Run.TERMINAL:
        # There is more to show now than this part: the whole page is loaded again.
        return HttpResponseClientRefresh()
    context = {**_common_context(run), "log": run_queries.read_log_tail(run)}
    return render(request, "runs/status.html", context)


@require_safe
def run_document(_: HttpRequest, pk: int) -> HttpResponse:
    """The run's document as a file: what `paceline compare` reads."""
    text = run_queries.document_text(get_object_or_404(Run, pk=pk))
    if text is None:
        raise Http404("This run has no document.")
    name = f'attachment; filename="paceline-run-{pk}.json"'
    return HttpResponse(text, content_type="application/json", headers={"Content-Disposition": name})


@require_safe
def run_log_text(_: HttpRequest, pk: int) -> HttpResponse:
    """The whole log as plain text: a browser must not read it as a page."""
    log = get_object_or_404(RunLog, run=pk)
    return HttpResponse(log.text, content_type="text/plain; charset=utf-8")


@require_POST
def cancel_run(request: HttpRequest, pk: int) -> HttpResponse:
    try:
        cancelling.cancel_run(visitor_of(request), get_object_or_404(Run, pk=pk))
    except cancelling.NotCancellable as error:
        messages.info(request, str(error))
    else:
        messages.success(request, f"Run {pk} is cancelled.")
    return redirect("run", pk)


@require_POST
def cancel_remeasuring(request: HttpRequest, slug: str) -> HttpResponse:
    try:
        ended = cancelling.cancel_remeasuring(visitor_of(request), requested_project(request, slug))
    except cancelling.NotCancellable as error:
        messages.info(request, str(error))
    else:
        messages.success(request, f"{format_count(ended, 'run')} cancelled.")
    return redirect("project-runs", slug)


def _common_context(run: Run, document: Json | None = None) -> dict[str, Any]:
    active = run.state not in Run.TERMINAL
    return {
        "run": run,
        "project": run.case.project,
        "active": active,
        "expected_end": _expected_end(run) if active else "",
        "command": reproduction_command(run, document),
        "stages": _progress_stages(run),
    }


def _expected_end(run: Run) -> str:
    now = timezone.now()
    elapsed = (now - run.claimed_at).total_seconds() if run.claimed_at else None
    measured = (now - run.measuring_at).total_seconds() if run.measuring_at else 0.0
    left = seconds_left_by_progress(run.progress, measured)
    return run_end_sentence(newest_duration(run), elapsed, left, run.time_limit)


def _progress_stages(run: Run) -> list[tuple[str, str]]:
    """(state, past | now | ahead) of the states that a run goes through; empty once it has ended."""
    states = [
        Run.State.REQUESTED,
        Run.State.CLAIMED,
        Run.State.PREPARING,
        Run.State.MEASURING,
        Run.State.STORING,
    ]
    if run.state not in states:
        return []
    current = states.index(Run.State(run.state))
    return [
        (state.value, "now" if index == current else "past" if index < current else "ahead")
        for index, state in enumerate(states)
    ]
