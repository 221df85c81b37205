"""One project: its cases by its headline metrics, what needs a person, its newest runs and triggers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRefresh

from dashboard.access import visitor_of
from dashboard.access.rules import is_offered
from dashboard.models import Project, Run, Sentinel, Trigger
from dashboard.pages.link_previews import preview_of_page
from dashboard.pages.noise.summary import NoiseSummary, summarize_noise
from dashboard.pages.paging import ROWS_PER_PAGE
from dashboard.pages.projects.case_grid import grid_context
from dashboard.pages.requested_project import requested_project
from dashboard.pages.triggers.form import trigger_form_context
from dashboard.postgresql import nonempty_lists
from dashboard.postgresql.compiled_queries import NOW, CompiledQuery, Parameter
from dashboard.querysets import disturbances, limits, projects, regressions, runs, sentinels
from dashboard.querysets.case_grid import LACKING_CASES, CaseState
from dashboard.querysets.deferred_joins import read_with_details
from dashboard.runs.planning import PUSHED
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.metric_labels import metric_label, metric_sort_key

SUMMARY_ROWS = 8
MOST_FAILURES = 6
MOST_METRICS = 6
NEWEST_TRIGGERS = 5
TRIGGERS_READ = 4 * NEWEST_TRIGGERS
# What is mostly empty.
WARNED_OF: dict[str, CompiledQuery[Any]] = {
    "moved": sentinels.RECENTLY_MOVED,
    "crossed": limits.CROSSED_OF_PROJECT,
    "lacking": LACKING_CASES,
    "failures": CompiledQuery(
        lambda _most: runs.recent_failures(NOW, Project.objects.filter(pk=Parameter("project")))[
            :MOST_FAILURES
        ]
    ),
}


@require_safe
def project_page(request: HttpRequest, slug: str) -> HttpResponse:
    project = requested_project(request, slug)
    now = timezone.now()
    grid = grid_context(request, project)
    unresolved = regressions.unresolved_regressions(project, SUMMARY_ROWS)
    newest = projects.project_triggers(project)[:TRIGGERS_READ]
    triggers = read_with_details(projects.TRIGGERS_OF_KEYS, newest)
    warned = nonempty_lists.read_nonempty(
        WARNED_OF,
        ROWS_PER_PAGE,
        project=project.pk,
        since=now - sentinels.MOVED_WITHIN,
        now=now,
        metric=grid["grid"].metric,
    )
    shown = [] if grid["dense"] else [row.state for row in grid["rows"]]
    context = {
        "project": project,
        "tab": "summary",
        **grid,
        "regressions": unresolved.open,
        "preview": preview_of_page(
            project,
            project.get_absolute_url(),
            project.slug,
            _preview_sentence(len(unresolved.open), len(grid["states"])),
        ),
        "imported_regressions": unresolved.imported,
        "moved": [(sentinel, _format_sentinel_change(sentinel)) for sentinel in warned["moved"]],
        "crossed": warned["crossed"],
        **_other_cases_context(warned["lacking"], grid["metrics"]),
        "failures": warned["failures"],
        "refused": projects.newest_refusal(triggers, now),
        "tainted_cases": disturbances.mostly_tainted_cases(now, Project.objects.filter(pk=project.pk)),
        "noise": NoiseSummary() if grid["is_signed"] else summarize_noise(grid["states"], shown),
        **_runs_context(project, [trigger.state for trigger in triggers]),
        "triggers": triggers[:NEWEST_TRIGGERS],
        # New commits come by themselves: nobody needs to be shown how.
        "is_pushed": any(trigger.source in PUSHED for trigger in triggers),
    }
    if is_offered(visitor_of(request), "trigger", project):
        context |= trigger_form_context(project, durations=known_durations(grid["states"]))
    return render(request, "projects/project.html", context, status=400 if grid["grid_refused"] else 200)


def _other_cases_context(
    lacking: Sequence[tuple[int, str]], metrics: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """How many cases don't have the grid's metric, which would be missing without a word, and by which ones
    they are shown: these are offered beside `metrics`."""
    names = sorted({name for _, name in lacking}, key=metric_sort_key)
    others = [(name, metric_label(name)) for name in names]
    return {
        "other_cases": len(lacking),
        "other_metrics": others[:MOST_METRICS],
        "metrics": [*metrics, *(other for other in others if other not in metrics)],
    }


def _preview_sentence(regressions: int, cases: int) -> str:
    """`2 open regressions, 12 cases.`; where more regressions may be open than were read, `8 or more`."""
    found = numbers.format_count(regressions, "open regression")
    if regressions >= SUMMARY_ROWS:
        found = f"{regressions} or more open regressions"
    return f"{found}, {numbers.format_count(cases, 'case')}."


def known_durations(states: Sequence[CaseState]) -> dict[str, float]:
    """Seconds that the newest whole run of each case took, by the case's name."""
    return {
        str(state.case): state.seconds for state in states if state.seconds is not None and not state.quick
    }


def _format_sentinel_change(sentinel: Sentinel) -> str:
    """`+12 % [10, 14]`."""
    interval = numbers.format_percent_interval(sentinel.low, sentinel.high)
    return f"{numbers.format_percent_change(sentinel.ratio or 1.0)} {interval}".strip()


@require_safe
def live_runs_fragment(request: HttpRequest, slug: str) -> HttpResponseBase:
    """The newest runs alone, asked for again and again; the whole page, once the last one has ended or,
    where `seen` names the newest run of a page on which none was active, once there is something new."""
    project = requested_project(request, slug)
    context = _runs_context(project)
    if not context["live"] and request.GET.get("seen") == str(context["newest"]):
        return HttpResponse(status=204)
    if not context["live"] or "seen" in request.GET:
        return HttpResponseClientRefresh()
    return render(request, "projects/live_runs.html", {"project": project, **context})


def _runs_context(project: Project, states: Iterable[str] | None = None) -> dict[str, Any]:
    """`states`: of the newest triggers, where the page has read them."""
    listed, more, remeasuring = runs.summarize_runs(project, held=5, waiting=2, ended=6)
    active = any(run.state not in Run.TERMINAL for run in listed)
    ended = any(run.state in Run.TERMINAL for run in listed)
    if states is None:
        # The same ones: another answer than the page's would have it loaded again and again.
        states = projects.project_triggers(project).values_list("state", flat=True)[:TRIGGERS_READ]
    unresolved = Trigger.State.RECEIVED in states
    return {
        "runs": listed,
        "more_active": more,
        "remeasuring": remeasuring,
        "newest": max((run.pk for run in listed), default=0),
        "under_way": active,
        "coming": (active or unresolved) and not ended,
        "live": active or unresolved,
    }
