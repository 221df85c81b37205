"""One project: its cases by its headline metrics, its runs, its commits, and what asked for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRefresh

from dashboard.models import Case, Change, Commit, Pool, Project, Run, Sentinel, SeriesLatest
from dashboard.pages.paging import requested_page
from dashboard.pages.trigger_form import trigger_form_context
from dashboard.querysets import (
    disturbances,
    experiments,
    limits,
    projects,
    regressions,
    run_costs,
    runs,
    sentinels,
    series,
)
from dashboard.sentences import labels, numbers
from dashboard.sentences.costs import tally_sentence

CASES_PER_PAGE = 25
SUMMARY_ROWS = 8
SUMMARY_EXPERIMENTS = 4
ROWS_PER_PAGE = 40


@dataclass(frozen=True, slots=True)
class CaseRow:
    """A case as measured in one pool: a cell per column, None where it lacks that metric."""

    case: Case
    version: int
    pool: Pool
    quick: bool
    cells: list[SeriesCell | None]


@dataclass(frozen=True, slots=True)
class SeriesCell:
    """The latest state of a series, and the change of an open regression in it, if there is one."""

    latest: SeriesLatest
    change: Change | None


@require_safe
def project_page(request: HttpRequest, slug: str) -> HttpResponse:
    project = get_object_or_404(Project, slug=slug)
    cases = requested_page(request, projects.project_cases(project), CASES_PER_PAGE, "cases")
    columns, rows = build_case_grid(project, list(cases))
    now = timezone.now()
    itself = Project.objects.filter(pk=project.pk)
    moved = sentinels.recently_moved_sentinels(project)
    crossed = limits.currently_crossed().filter(series__configuration__case__project=project)
    context = {
        **_common_context(project, "summary"),
        "cases": cases,
        "columns": columns,
        "rows": rows,
        "regressions": list(regressions.open_regressions().filter(project=project)[:SUMMARY_ROWS]),
        "imported_regressions": list(regressions.imported_regressions(project)[:SUMMARY_ROWS]),
        "tally": tally_sentence(regressions.tally_proofs(itself)),
        "moved": [(sentinel, _format_sentinel_change(sentinel)) for sentinel in moved],
        "crossed": list(crossed[:ROWS_PER_PAGE]),
        "refused": projects.refused_triggers(now).filter(project=project).first(),
        "tainted_cases": disturbances.mostly_tainted_cases(now, itself),
        **_runs_context(project),
        "commits": _commit_lines(project, projects.project_commits(project)[:SUMMARY_ROWS]),
        "experiments": list(experiments.project_experiments(project)[:SUMMARY_EXPERIMENTS]),
        "triggers": list(projects.project_triggers(project)[:5]),
        **trigger_form_context(project),
    }
    return render(request, "project.html", context)


def _format_sentinel_change(sentinel: Sentinel) -> str:
    """`+12 % [10, 14]`."""
    interval = numbers.format_percent_interval(sentinel.low, sentinel.high)
    return f"{numbers.format_percent_change(sentinel.ratio or 1.0)} {interval}".strip()


@require_safe
def live_runs_fragment(request: HttpRequest, slug: str) -> HttpResponseBase:
    """The newest runs alone: asked for again and again while one of them is active
    or a trigger is about to become runs."""
    project = get_object_or_404(Project, slug=slug)
    context = _runs_context(project)
    if not context["live"]:
        # The last one has ended: its values are in the tables of the whole page.
        return HttpResponseClientRefresh()
    return render(request, "fragments/live_runs.html", {"project": project, **context})


def _runs_context(project: Project) -> dict[str, Any]:
    listed, more = runs.summarize_runs(project, held=5, waiting=2, ended=6)
    active = any(run.state not in Run.TERMINAL for run in listed)
    live = active or projects.has_unresolved_trigger(project)
    return {"runs": listed, "more_active": more, "under_way": active, "live": live}


@require_safe
def runs_page(request: HttpRequest, slug: str) -> HttpResponse:
    project = get_object_or_404(Project, slug=slug)
    page = requested_page(request, runs.project_runs(project), ROWS_PER_PAGE)
    context = {**_common_context(project, "runs"), "page": page, "runs": list(page)}
    return render(request, "project_runs.html", context)


@require_safe
def commits_page(request: HttpRequest, slug: str) -> HttpResponse:
    project = get_object_or_404(Project, slug=slug)
    page: Page[Commit] = requested_page(request, projects.project_commits(project), ROWS_PER_PAGE)
    context = {
        **_common_context(project, "commits"),
        "page": page,
        "commits": _commit_lines(project, page),
        "comparing": len(page) > 1,
    }
    return render(request, "project_commits.html", context)


@require_safe
def triggers_page(request: HttpRequest, slug: str) -> HttpResponse:
    project = get_object_or_404(Project, slug=slug)
    page = requested_page(request, projects.project_triggers(project), ROWS_PER_PAGE)
    context = {**_common_context(project, "triggers"), "page": page, "triggers": list(page)}
    return render(request, "project_triggers.html", context)


def _common_context(project: Project, tab: str) -> dict[str, Any]:
    return {"project": project, "tab": tab}


def _commit_lines(project: Project, shown: Iterable[Commit]) -> list[dict[str, Any]]:
    commits = list(shown)
    blamed = regressions.regressions_by_commit(project, commits)
    costs = run_costs.costs_by_commit([commit.pk for commit in commits])
    return [
        {"commit": commit, "regression": blamed.get(commit.pk), "cost": costs.get(commit.pk)}
        for commit in commits
    ]


def build_case_grid(project: Project, cases: list[Case]) -> tuple[list[str], list[CaseRow]]:
    """(columns, rows): the newest version of each case in each pool, by its headline metrics."""
    latest = _newest_versions(list(series.latest_headlines(cases)))
    changes = regressions.changes_by_series(project, [state.pk for state in latest])
    by_row: dict[tuple[int, str, bool], dict[tuple[str, str], SeriesLatest]] = {}
    for state in latest:
        identity = (state.series.case.pk, state.series.pool.name, state.series.quick)
        by_row.setdefault(identity, {})[_column_key(state)] = state
    columns = _metric_columns(list(by_row.values()))
    by_id = {case.pk: case for case in cases}
    order = {case.pk: index for index, case in enumerate(cases)}
    rows = []
    for (case, _, quick), states in sorted(by_row.items(), key=lambda item: (order[item[0][0]], item[0])):
        any_series = next(iter(states.values())).series
        cells = [
            SeriesCell(states[column], changes.get(states[column].pk)) if column in states else None
            for column in columns
        ]
        rows.append(CaseRow(by_id[case], any_series.version, any_series.pool, quick, cells))
    return [labels.metric_label(*column) for column in columns], rows


def _metric_columns(rows: Sequence[Mapping[tuple[str, str], SeriesLatest]]) -> list[tuple[str, str]]:
    """The metrics that any row has; phases, which are one benchmark's own, where every row has them."""
    columns = {column for states in rows for column in states}
    shown = [column for column in columns if not column[1] or all(column in states for states in rows)]
    return sorted(shown, key=lambda column: labels.metric_sort_key(*column))


def _newest_versions(latest: list[SeriesLatest]) -> list[SeriesLatest]:
    newest: dict[tuple[int, int, bool], int] = {}
    for state in latest:
        identity = (state.series.case.pk, state.series.pool.pk, state.series.quick)
        newest[identity] = max(newest.get(identity, 0), state.series.version)
    return [
        state
        for state in latest
        if newest[(state.series.case.pk, state.series.pool.pk, state.series.quick)] == state.series.version
    ]


def _column_key(state: SeriesLatest) -> tuple[str, str]:
    return state.series.metric.name, state.series.phase
