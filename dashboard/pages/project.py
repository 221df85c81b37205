"""One project: its cases by its headline metrics, its runs, its commits, and what asked for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRefresh

from dashboard.charts import units
from dashboard.models import Case, Change, Commit, Pool, Project, Run, Sentinel, SeriesLatest
from dashboard.pages import words
from dashboard.pages.costs import tally_sentence
from dashboard.pages.paging import page_of
from dashboard.querysets import limits, projects, regressions, runs, sentinels, series

CASES = 25
FEW = 8
LONG = 40


@dataclass(frozen=True, slots=True)
class Row:
    """A case as measured in one pool: a cell per column, None where it lacks that metric."""

    case: Case
    version: int
    pool: Pool
    quick: bool
    cells: list[Cell | None]


@dataclass(frozen=True, slots=True)
class Cell:
    """The latest state of a series, and the change of an open regression in it, if there is one."""

    latest: SeriesLatest
    change: Change | None


@require_safe
def project(request: HttpRequest, slug: str) -> HttpResponse:
    shown = get_object_or_404(Project, slug=slug)
    cases = page_of(request, projects.cases(shown), CASES, "cases")
    columns, rows = grid(shown, list(cases))
    context = {
        **_common(shown, "summary"),
        "cases": cases,
        "columns": columns,
        "rows": rows,
        "regressions": list(regressions.open_ones().filter(project=shown)[:FEW]),
        "tally": tally_sentence(regressions.tally(shown.slug)),
        "moved": [(one, _by(one)) for one in sentinels.moved_lately(shown)],
        "crossed": list(limits.standing().filter(series__case__project=shown)[:LONG]),
        **_runs(shown),
        "commits": _commits(projects.commits(shown)[:FEW]),
        "triggers": list(projects.triggers(shown)[:5]),
        "benchmarks": projects.benchmarks(shown),
    }
    return render(request, "project.html", context)


def _by(sentinel: Sentinel) -> str:
    """`+12 % [10, 14]`."""
    interval = units.format_percent_interval(sentinel.low, sentinel.high)
    return f"{units.format_percent_change(sentinel.ratio or 1.0)} {interval}".strip()


@require_safe
def live_runs(request: HttpRequest, slug: str) -> HttpResponseBase:
    """The newest runs alone: asked for again and again while one of them is active
    or a trigger is about to become runs."""
    shown = get_object_or_404(Project, slug=slug)
    found = _runs(shown)
    if not found["live"]:
        # The last one has ended: its values are in the tables of the whole page.
        return HttpResponseClientRefresh()
    return render(request, "fragments/live_runs.html", {"project": shown, **found})


def _runs(shown: Project) -> dict[str, Any]:
    listed, more = runs.summary(shown, held=5, waiting=2, ended=6)
    active = any(run.state not in Run.TERMINAL for run in listed)
    live = active or projects.awaits_runs(shown)
    return {"runs": listed, "more_active": more, "under_way": active, "live": live}


@require_safe
def run_list(request: HttpRequest, slug: str) -> HttpResponse:
    shown = get_object_or_404(Project, slug=slug)
    page = page_of(request, runs.of_project(shown), LONG)
    return render(request, "project_runs.html", {**_common(shown, "runs"), "page": page, "runs": list(page)})


@require_safe
def commit_list(request: HttpRequest, slug: str) -> HttpResponse:
    shown = get_object_or_404(Project, slug=slug)
    page: Page[Commit] = page_of(request, projects.commits(shown), LONG)
    context = {**_common(shown, "commits"), "page": page, "commits": _commits(page)}
    return render(request, "project_commits.html", context)


@require_safe
def trigger_list(request: HttpRequest, slug: str) -> HttpResponse:
    shown = get_object_or_404(Project, slug=slug)
    page = page_of(request, projects.triggers(shown), LONG)
    context = {**_common(shown, "triggers"), "page": page, "triggers": list(page)}
    return render(request, "project_triggers.html", context)


def _common(shown: Project, tab: str) -> dict[str, Any]:
    return {"project": shown, "tab": tab}


def _commits(found: Any) -> list[dict[str, Any]]:
    listed = list(found)
    blamed = regressions.blamed(commit.pk for commit in listed)
    return [{"commit": commit, "regression": blamed.get(commit.pk)} for commit in listed]


def grid(shown: Project, cases: list[Case]) -> tuple[list[str], list[Row]]:
    """(columns, rows): the newest version of each case in each pool, by its headline metrics."""
    latest = _newest_versions(list(series.headlines(cases)))
    changes = regressions.open_changes(shown, [state.pk for state in latest])
    found: dict[tuple[int, str, bool], dict[tuple[str, str], SeriesLatest]] = {}
    for state in latest:
        identity = (state.series.case_id, state.series.pool.name, state.series.quick)
        found.setdefault(identity, {})[_column(state)] = state
    columns = _columns(list(found.values()))
    by_id = {case.pk: case for case in cases}
    order = {case.pk: place for place, case in enumerate(cases)}
    rows = []
    for (case, _, quick), states in sorted(found.items(), key=lambda item: (order[item[0][0]], item[0])):
        some = next(iter(states.values())).series
        cells = [
            Cell(states[column], changes.get(states[column].pk)) if column in states else None
            for column in columns
        ]
        rows.append(Row(by_id[case], some.version, some.pool, quick, cells))
    return [words.metric_name(*column) for column in columns], rows


def _columns(rows: Sequence[Mapping[tuple[str, str], SeriesLatest]]) -> list[tuple[str, str]]:
    """The metrics that any row has; phases, which are one benchmark's own, where every row has them."""
    columns = {column for states in rows for column in states}
    shown = [column for column in columns if not column[1] or all(column in states for states in rows)]
    return sorted(shown, key=lambda column: words.metric_place(*column))


def _newest_versions(latest: list[SeriesLatest]) -> list[SeriesLatest]:
    newest: dict[tuple[int, int, bool], int] = {}
    for state in latest:
        identity = (state.series.case_id, state.series.pool_id, state.series.quick)
        newest[identity] = max(newest.get(identity, 0), state.series.version)
    return [
        state
        for state in latest
        if newest[(state.series.case_id, state.series.pool_id, state.series.quick)] == state.series.version
    ]


def _column(state: SeriesLatest) -> tuple[str, str]:
    return state.series.metric.name, state.series.phase
