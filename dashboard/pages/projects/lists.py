"""The lists of one project: its runs, its commits, and what asked for runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.paginator import Page
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.models import Commit, Project, Run
from dashboard.pages.list_filters import FilterError, ListFilter, match_words, read_choice, read_list_filter
from dashboard.pages.paging import ROWS_PER_PAGE, requested_page
from dashboard.pages.requested_project import requested_project
from dashboard.pages.triggers.missing_runs import missing_context
from dashboard.querysets import projects, regressions, run_costs, runs

# Beside the states of a run itself.
RUN_STATES: dict[str, Q] = {
    "active": ~Q(state__in=Run.TERMINAL),
    "remeasuring": Run.IS_REMEASURING,
    "tainted": Q(tainted=True),
    **{state.value: Q(state=state) for state in Run.State},
}


@require_safe
def runs_page(request: HttpRequest, slug: str) -> HttpResponse:
    project = requested_project(request, slug)
    state, filters, commit, refused = "", ListFilter(), "", ""
    try:
        state = read_choice(request, "state", RUN_STATES)
        filters, commit = read_run_filter(request, project)
    except FilterError as error:
        refused = str(error)
    listed = filter_runs(runs.project_runs(project), state, filters, commit)
    page = requested_page(request, listed, ROWS_PER_PAGE, details=runs.RUNS_OF_KEYS)
    context = {
        "project": project,
        "tab": "runs",
        "page": page,
        "runs": list(page),
        "states": RUN_STATES,
        "state": state,
        "filters": filters,
        "commit_hash": commit,
        "filtered": bool(state or filters or commit),
        "refused": refused,
        # All of them, with no other filter.
        "waiting": page.paginator.count if state == Run.State.REQUESTED else 0,
        "remeasuring": page.paginator.count if state == "remeasuring" and not (filters or commit) else 0,
        "single_case": projects.has_single_case(project),
    }
    return render(request, "projects/runs.html", context, status=400 if refused else 200)


def read_run_filter(request: HttpRequest, project: Project) -> tuple[ListFilter, str]:
    """Beside the state what lists of runs are filtered by, and the beginning of a commit's hash. Raises
    FilterError."""
    commit = request.GET.get("commit", "").strip()[:64].replace("\x00", " ")
    return read_list_filter(request, project), commit


def filter_runs(rows: QuerySet[Run], state: str, filters: ListFilter, commit: str) -> QuerySet[Run]:
    found = rows.filter(RUN_STATES[state]) if state else rows
    found = found.filter(
        match_words(filters.case, "configuration__case__benchmark", "configuration__case__key")
    )
    if filters.machine:
        found = found.filter(machine__name=filters.machine)
    if filters.branch:
        found = found.filter(commit__branch=filters.branch)
    if commit:
        found = found.filter(commit__hash__startswith=commit)
    return found.filter(filters.match_period("requested_at"))


@require_safe
def commits_page(request: HttpRequest, slug: str) -> HttpResponse:
    project = requested_project(request, slug)
    listed = projects.project_commits(project)
    words = request.GET.get("q", "").strip()[:200].replace("\x00", " ")
    page: Page[Commit] = requested_page(
        request,
        listed.filter(match_words(words, "subject", "author", "hash")),
        ROWS_PER_PAGE,
        details=projects.COUNTED_OF_KEYS,
    )
    context = {
        "project": project,
        "tab": "commits",
        "page": page,
        "commits": describe_commits(project, page),
        "comparing": bool(project.repository) and len(page) > 1,
        "words": words,
        **missing_context(project),
    }
    return render(request, "projects/commits.html", context)


@require_safe
def triggers_page(request: HttpRequest, slug: str) -> HttpResponse:
    project = requested_project(request, slug)
    page = requested_page(
        request, projects.project_triggers(project), ROWS_PER_PAGE, details=projects.TRIGGERS_OF_KEYS
    )
    context = {"project": project, "tab": "triggers", "page": page, "triggers": list(page)}
    return render(request, "projects/triggers.html", context)


def describe_commits(project: Project, shown: Iterable[Commit]) -> list[dict[str, Any]]:
    """Each with the regression that it may be to blame for, and what its runs cost."""
    commits = list(shown)
    blamed = regressions.regressions_by_commit(project, commits)
    costs = run_costs.costs_by_commit([commit.pk for commit in commits])
    return [
        {"commit": commit, "regression": blamed.get(commit.pk), "cost": costs.get(commit.pk)}
        for commit in commits
    ]
