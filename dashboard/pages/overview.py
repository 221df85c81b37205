"""What needs me now, and every project's state at a glance."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from django.core.paginator import Page
from django.db.models import Exists, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRefresh

from dashboard.access import visitor_of
from dashboard.models import Experiment, FailedJob, Project, Run, SeriesLatest
from dashboard.pages.list_filters import LONGEST_TEXT, match_words
from dashboard.pages.paging import parse_whole_number, requested_page
from dashboard.postgresql import nonempty_lists
from dashboard.postgresql.compiled_queries import NOW, CompiledQuery
from dashboard.querysets import disturbances, experiments, limits, projects, regressions, runs, series
from dashboard.querysets.visibility import ProjectVisibility, VisibilityRule

MOST_REGRESSIONS = 8
MOST_RUNS = 6
MOST_POOLS = 100
PROJECTS = 20


def _watched_projects(rule: VisibilityRule) -> QuerySet[Project]:
    """Those that may need somebody here."""
    return rule.given_projects().exclude(projects.RESTING_COPY)


# What may need a person, and what is under way: bounded, with an item more than is shown where the page says
# that there are more. Most of these lists are empty most of the time.
LISTS: dict[str, CompiledQuery[Any]] = {
    "limits": CompiledQuery(
        lambda rule: limits.crossed_without_regression(_watched_projects(rule))[: MOST_REGRESSIONS + 1]
    ),
    "undelivered": CompiledQuery(
        lambda rule: regressions.given_up_deliveries(NOW, _watched_projects(rule))[:MOST_RUNS]
    ),
    "refused": CompiledQuery(
        lambda rule: projects.refused_triggers(NOW).filter(project__in=_watched_projects(rule))[:MOST_RUNS]
    ),
    "failures": CompiledQuery(
        lambda rule: runs.recent_failures(NOW, _watched_projects(rule))[: MOST_RUNS + 1]
    ),
    "machines": CompiledQuery(lambda _: projects.silent_machines(NOW)[:MOST_RUNS]),
    "full": CompiledQuery(lambda _: projects.full_machines(NOW)[:MOST_RUNS]),
    "parts": CompiledQuery(lambda _: projects.silent_parts(NOW)[:MOST_RUNS]),
    "waiting": CompiledQuery(lambda _: projects.runs_without_machine(NOW)[:MOST_POOLS]),
    "jobs": CompiledQuery(lambda rule: _failed_jobs(rule)[:MOST_RUNS]),
    "active": CompiledQuery(lambda rule: runs.active_runs(rule.given_projects())[: MOST_RUNS + 1]),
    "measuring": CompiledQuery(
        lambda rule: experiments.active_experiments(rule.given_projects())[: MOST_RUNS + 1]
    ),
}
# What is under way needs nobody.
WORK = ("active", "measuring")
OPEN_REGRESSIONS = CompiledQuery(
    lambda rule: regressions.open_regressions(_watched_projects(rule), MOST_REGRESSIONS + 1)
)
FIRST_PROJECTS = CompiledQuery(
    lambda rule: projects.projects_with_summary(rule.given_projects())[: PROJECTS + 1]
)


@require_safe
def overview_page(request: HttpRequest) -> HttpResponse:
    visibility = visitor_of(request).project_visibility
    words = request.GET.get("q", "").replace("\x00", " ").strip()[:LONGEST_TEXT]
    page = _projects_page(request, visibility, words)
    lines = _project_lines(list(page))
    found = nonempty_lists.read_nonempty(LISTS, visibility.rule, now=timezone.now(), **visibility.values)
    context = {
        **_attention_context(found, visibility),
        **_describe_work(found["active"], found["measuring"]),
        # An idle one is asked less often, and wakes when something starts.
        "live": True,
        "page": page,
        "projects": lines,
        "words": words,
    }
    return render(request, "overview/overview.html", context)


def _projects_page(request: HttpRequest, visibility: ProjectVisibility, words: str) -> Page[Project]:
    whole = not words and "page" not in request.GET
    first = FIRST_PROJECTS.read_rows(visibility.rule, **visibility.values) if whole else None
    if first is not None and len(first) <= PROJECTS:
        return requested_page(request, first, PROJECTS)
    named = visibility.rows().filter(match_words(words, "slug", "repository"))
    return requested_page(request, projects.projects_with_summary(named), PROJECTS, first=first)


def _attention_context(found: dict[str, list[Any]], visibility: ProjectVisibility) -> dict[str, Any]:
    items = {name: rows for name, rows in found.items() if name not in WORK}
    items["regressions"] = OPEN_REGRESSIONS.read_rows(visibility.rule, **visibility.values)
    items["tainted_cases"] = disturbances.mostly_tainted_cases(
        timezone.now(), visibility.rows().exclude(projects.RESTING_COPY)
    )
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
    return render(request, "overview/active_runs.html", {**work, "live": True})


def _failed_jobs(rule: VisibilityRule) -> QuerySet[FailedJob]:
    """What went wrong may name any project: shown where none is hidden from the visitor."""
    hidden = Project.objects.filter(removed_slug="").exclude(pk__in=rule.given_projects().values("pk"))
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
