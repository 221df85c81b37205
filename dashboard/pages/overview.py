"""What needs me now, and every project's state at a glance."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from django.db.models import Exists, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRefresh

from dashboard.access import Visitor, visitor_of
from dashboard.models import FailedJob, Project, SeriesLatest
from dashboard.pages.list_filters import LONGEST_TEXT, match_words
from dashboard.pages.paging import parse_whole_number, requested_page
from dashboard.querysets import disturbances, experiments, limits, projects, regressions, runs, series

MOST_REGRESSIONS = 8
MOST_RUNS = 6
PROJECTS = 20


@require_safe
def overview_page(request: HttpRequest) -> HttpResponse:
    visitor = visitor_of(request)
    visible = visitor.visible_projects()
    words = request.GET.get("q", "").replace("\x00", " ").strip()[:LONGEST_TEXT]
    named = visible.filter(match_words(words, "slug", "repository"))
    page = requested_page(request, projects.projects_with_summary(named), PROJECTS)
    lines = _project_lines(list(page))
    work = _active_work(visible)
    context = {
        **_attention_context(visitor),
        **work,
        # An idle one is asked less often, and wakes when something starts.
        "live": True,
        "page": page,
        "projects": lines,
        "words": words,
    }
    return render(request, "overview.html", context)


def _attention_context(visitor: Visitor) -> dict[str, Any]:
    """Bounded lists, one item more than is shown, so that the page can say that there are more."""
    now = timezone.now()
    visible = visitor.visible_projects()
    items: dict[str, list[Any]] = {
        "regressions": list(
            regressions.open_regressions().filter(project__in=visible)[: MOST_REGRESSIONS + 1]
        ),
        "limits": list(limits.crossed_without_regression(visible)[: MOST_REGRESSIONS + 1]),
        "undelivered": list(regressions.given_up_deliveries(now, visible)[:MOST_RUNS]),
        "refused": list(projects.refused_triggers(now).filter(project__in=visible)[:MOST_RUNS]),
        "tainted_cases": disturbances.mostly_tainted_cases(now, visible),
        "failures": list(runs.recent_failures(now, visible)[: MOST_RUNS + 1]),
        "machines": list(projects.silent_machines(now)[:MOST_RUNS]),
        "parts": list(projects.silent_parts(now)),
        "waiting": projects.runs_without_machine(now),
        "jobs": _failed_jobs(visitor),
    }
    quiet = not any(items.values())
    more = {
        "more_regressions": len(items["regressions"]) > MOST_REGRESSIONS,
        "more_limits": len(items["limits"]) > MOST_REGRESSIONS,
        "more_failures": len(items["failures"]) > MOST_RUNS,
    }
    items["regressions"] = items["regressions"][:MOST_REGRESSIONS]
    items["limits"] = items["limits"][:MOST_REGRESSIONS]
    items["failures"] = items["failures"][:MOST_RUNS]
    return {**items, **more, "quiet": quiet}


@require_safe
def active_runs_fragment(request: HttpRequest) -> HttpResponseBase:
    """What is active alone, asked for again and again; the whole page, once there is more or less of it."""
    work = _active_work(visitor_of(request).visible_projects())
    if work["seen"] != parse_whole_number(request, "seen", 0, 2 * (MOST_RUNS + 1)):
        return HttpResponseClientRefresh()
    return render(request, "fragments/active_runs.html", {**work, "live": True})


def _failed_jobs(visitor: Visitor) -> list[FailedJob]:
    """What went wrong may name any project: shown where none is hidden from the visitor."""
    hidden = Project.objects.filter(removed_slug="").exclude(pk__in=visitor.visible_projects().values("pk"))
    return list(FailedJob.objects.filter(~Exists(hidden)).order_by("-pk")[:MOST_RUNS])


def _active_work(visible: QuerySet[Project]) -> dict[str, Any]:
    """Runs and experiments, one more of each than is shown, so that the page can say that there are more."""
    active = list(runs.active_runs(visible)[: MOST_RUNS + 1])
    measuring = list(experiments.active_experiments(visible)[: MOST_RUNS + 1])
    return {
        "active": active,
        "shown": active[:MOST_RUNS],
        "active_experiments": measuring,
        "experiments": measuring[:MOST_RUNS],
        "seen": len(active) + len(measuring),
    }


def _project_lines(shown: list[Project]) -> list[dict[str, Any]]:
    latest_by_project: dict[int, list[SeriesLatest]] = defaultdict(list)
    for latest in series.latest_for_overview(shown):
        latest_by_project[latest.series.case.project_id].append(latest)
    keys = ("newest_commit_id", "measured_commit_id")
    commits = projects.commits_by_id(getattr(project, key) for project in shown for key in keys)
    return [
        {
            "project": project,
            "commit": commits.get(getattr(project, "newest_commit_id", None) or 0),
            "measured": commits.get(getattr(project, "measured_commit_id", None) or 0),
            "latest_states": latest_by_project[project.pk],
        }
        for project in shown
    ]
