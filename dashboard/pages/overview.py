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
from dashboard.models import Experiment, FailedJob, Project, Run, SeriesLatest
from dashboard.pages.list_filters import LONGEST_TEXT, match_words
from dashboard.pages.paging import parse_whole_number, requested_page
from dashboard.querysets import (
    disturbances,
    experiments,
    limits,
    presence,
    projects,
    regressions,
    runs,
    series,
)

MOST_REGRESSIONS = 8
MOST_RUNS = 6
MOST_POOLS = 100
PROJECTS = 20


@require_safe
def overview_page(request: HttpRequest) -> HttpResponse:
    visitor = visitor_of(request)
    visible = visitor.visible_projects()
    words = request.GET.get("q", "").replace("\x00", " ").strip()[:LONGEST_TEXT]
    named = visible.filter(match_words(words, "slug", "repository"))
    page = requested_page(request, projects.projects_with_summary(named), PROJECTS)
    lines = _project_lines(list(page))
    found = _read_lists(visitor, visible)
    context = {
        **_attention_context(found, visible),
        **_describe_work(found["active"], found["measuring"]),
        # An idle one is asked less often, and wakes when something starts.
        "live": True,
        "page": page,
        "projects": lines,
        "words": words,
    }
    return render(request, "overview.html", context)


def _read_lists(visitor: Visitor, visible: QuerySet[Project]) -> dict[str, list[Any]]:
    """What may need a person, and what is under way: bounded, with an item more than is shown where the page
    says that there are more. Most of these lists are empty most of the time."""
    now = timezone.now()
    lists: dict[str, tuple[QuerySet[Any], int]] = {
        "limits": (limits.crossed_without_regression(visible), MOST_REGRESSIONS + 1),
        "undelivered": (regressions.given_up_deliveries(now, visible), MOST_RUNS),
        "refused": (projects.refused_triggers(now).filter(project__in=visible), MOST_RUNS),
        "failures": (runs.recent_failures(now, visible), MOST_RUNS + 1),
        "machines": (projects.silent_machines(now), MOST_RUNS),
        "parts": (projects.silent_parts(now), MOST_RUNS),
        "waiting": (projects.runs_without_machine(now), MOST_POOLS),
        "jobs": (_failed_jobs(visitor), MOST_RUNS),
        "active": (runs.active_runs(visible), MOST_RUNS + 1),
        "measuring": (experiments.active_experiments(visible), MOST_RUNS + 1),
    }
    return presence.read_filled(
        {name: rows for name, (rows, _) in lists.items()}, {name: most for name, (_, most) in lists.items()}
    )


def _attention_context(found: dict[str, list[Any]], visible: QuerySet[Project]) -> dict[str, Any]:
    items = {
        name: found[name]
        for name in ("limits", "undelivered", "refused", "failures", "machines", "parts", "waiting", "jobs")
    }
    open_rows = regressions.open_regressions().filter(project__in=visible)
    items["regressions"] = list(open_rows[: MOST_REGRESSIONS + 1])
    items["tainted_cases"] = list(disturbances.mostly_tainted_cases(timezone.now(), visible))
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
    visible = visitor_of(request).visible_projects()
    active = list(runs.active_runs(visible)[: MOST_RUNS + 1])
    work = _describe_work(active, list(experiments.active_experiments(visible)[: MOST_RUNS + 1]))
    if work["seen"] != parse_whole_number(request, "seen", 0, 2 * (MOST_RUNS + 1)):
        return HttpResponseClientRefresh()
    return render(request, "fragments/active_runs.html", {**work, "live": True})


def _failed_jobs(visitor: Visitor) -> QuerySet[FailedJob]:
    """What went wrong may name any project: shown where none is hidden from the visitor."""
    hidden = Project.objects.filter(removed_slug="").exclude(pk__in=visitor.visible_projects().values("pk"))
    return FailedJob.objects.filter(~Exists(hidden)).order_by("-pk")


def _describe_work(active: list[Run], measuring: list[Experiment]) -> dict[str, Any]:
    """Of one more of each than is shown, so that the page can say that there are more."""
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
