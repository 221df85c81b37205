"""What needs me now, and every project's state at a glance."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRefresh

from dashboard.models import Project, Run, SeriesLatest
from dashboard.pages.paging import page_of, whole_number
from dashboard.querysets import limits, projects, regressions, runs, series

MOST_REGRESSIONS = 8
MOST_RUNS = 6
PROJECTS = 20


@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    page = page_of(request, projects.at_a_glance(), PROJECTS)
    lines = _lines(list(page))
    active = _active()
    context = {
        **_needs(),
        "active": active,
        "shown": active[:MOST_RUNS],
        "live": bool(active) or any(line["project"].measured_at is None for line in lines),
        "page": page,
        "projects": lines,
    }
    return render(request, "overview.html", context)


def _needs() -> dict[str, Any]:
    """Bounded lists, one item more than is shown, so that the page can say that there are more."""
    now = timezone.now()
    found: dict[str, list[Any]] = {
        "regressions": list(regressions.open_ones()[: MOST_REGRESSIONS + 1]),
        "limits": list(limits.untold()[: MOST_REGRESSIONS + 1]),
        "failures": list(runs.failed_lately(now)[: MOST_RUNS + 1]),
        "machines": list(projects.silent_machines(now)[:MOST_RUNS]),
        "parts": list(projects.silent_parts(now)),
        "waiting": projects.waiting_in_vain(now),
    }
    quiet = not any(found.values())
    more = {
        "more_regressions": len(found["regressions"]) > MOST_REGRESSIONS,
        "more_limits": len(found["limits"]) > MOST_REGRESSIONS,
        "more_failures": len(found["failures"]) > MOST_RUNS,
    }
    found["regressions"] = found["regressions"][:MOST_REGRESSIONS]
    found["limits"] = found["limits"][:MOST_REGRESSIONS]
    found["failures"] = found["failures"][:MOST_RUNS]
    return {**found, **more, "quiet": quiet}


@require_safe
def work(request: HttpRequest) -> HttpResponseBase:
    """The active runs alone, asked for again and again; the whole page, once there are more or fewer."""
    active = _active()
    if len(active) != whole_number(request, "seen", 0, MOST_RUNS + 1):
        return HttpResponseClientRefresh()
    return render(
        request, "fragments/work.html", {"active": active, "shown": active[:MOST_RUNS], "live": True}
    )


def _active() -> list[Run]:
    """One more than is shown, so that the page can say that there are more."""
    return list(runs.active()[: MOST_RUNS + 1])


def _lines(shown: list[Project]) -> list[dict[str, Any]]:
    glances: dict[int, list[SeriesLatest]] = defaultdict(list)
    for latest in series.glances(shown):
        glances[latest.series.case.project_id].append(latest)
    named = ("newest_commit_id", "measured_commit_id")
    commits = projects.commits_by_id(getattr(project, name) for project in shown for name in named)
    return [
        {
            "project": project,
            "commit": commits.get(getattr(project, "newest_commit_id", None) or 0),
            "measured": commits.get(getattr(project, "measured_commit_id", None) or 0),
            "glances": glances[project.pk],
        }
        for project in shown
    ]
