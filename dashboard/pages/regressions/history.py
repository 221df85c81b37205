"""What regressed in a project since a day: grouped by the commit to blame, with the times and the costs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.models import Commit, Project, Regression, Run
from dashboard.pages.list_filters import FilterError, ListFilter, match_words, read_choice, read_list_filter
from dashboard.pages.requested_project import requested_project
from dashboard.querysets.costs import PROPORTIONAL_METRICS, slowdown_ratio
from dashboard.querysets.deferred_joins import read_with_details
from dashboard.querysets.regression_history import (
    MOST_LISTED,
    PROVED_OF_KEYS,
    hours_between,
    regressions_of_period,
)
from dashboard.querysets.run_costs import gpu_pools
from dashboard.sentences.formatting import numbers

DEFAULT_DAYS = 30
PERIODS = (7, 30, 90, 365)
HOURS_A_WEEK = 7 * 24


@dataclass(frozen=True, slots=True)
class DatedRegression:
    """Hours from its commit to when it was found, from there to its proof, and from its commit to its repair.

    `training_hours`: what training has lost by it so far; None where that isn't known. `on_gpu`: both are
    hours of machines with a GPU, as its pool's are.
    """

    regression: Regression
    to_find: float | None
    to_prove: float | None
    to_repair: float | None
    proof_hours: float
    training_hours: float | None
    on_gpu: bool


@dataclass(frozen=True, slots=True)
class CulpritGroup:
    """The regressions of one commit; of several that are left, `certain` is False."""

    commit: Commit
    certain: bool
    rows: list[DatedRegression]


@require_safe
def history_page(request: HttpRequest, slug: str) -> HttpResponse:
    project = requested_project(request, slug)
    now = timezone.now()
    filters, proven, refused = ListFilter(), "", ""
    try:
        proven = read_choice(request, "proven", ("yes",))
        filters = read_list_filter(request, project)
    except FilterError as error:
        refused = str(error)
    since = filters.since or (now - timedelta(days=DEFAULT_DAYS)).date()
    period = ListFilter(since=since, until=filters.until)
    case = "series__configuration__case"
    in_cases = match_words(filters.case, f"{case}__benchmark", f"{case}__key")
    began = period.match_period("first_bad__committed_at") & in_cases
    listed = regressions_of_period(project, began, proven=bool(proven))
    before = ListFilter(until=since - timedelta(days=1)).match_period("first_bad__committed_at") & in_cases
    found = read_with_details(PROVED_OF_KEYS, listed[: MOST_LISTED + 1])
    with_gpu = gpu_pools({row.series.configuration.pool_id for row in found})
    dated = [date_regression(row, project, now, with_gpu) for row in found[:MOST_LISTED]]
    context = {
        "project": project,
        "tab": "regressions",
        "since": since,
        "until": filters.until,
        "words": filters.case,
        "proven": proven,
        "refused": refused,
        "periods": [(days, (now - timedelta(days=days)).date()) for days in PERIODS],
        "groups": group_by_culprit(dated),
        "count": len(dated),
        # No regression among no results says nothing.
        "measured": bool(dated) or _has_results(project, period),
        # Of a history that was measured years after it was written all are earlier.
        "earlier": "" if dated else newest_day(regressions_of_period(project, before, proven=bool(proven))),
        "more": len(found) > MOST_LISTED,
        "summary": summarize_times(dated),
        "trained": project.training_hours_per_week is not None,
    }
    return render(request, "regressions/history.html", context, status=400 if refused else 200)


def newest_day(regressions: QuerySet[Regression]) -> str:
    """`2026-11-29`: of these, newest first, the day of the first one's commit; empty of none."""
    committed: datetime | None = regressions.values_list("first_bad__committed_at", flat=True).first()
    return committed.date().isoformat() if committed else ""


def _has_results(project: Project, period: ListFilter) -> bool:
    done = Run.objects.filter(project=project, state=Run.State.DONE)
    return done.filter(period.match_period("commit__committed_at")).exists()


def date_regression(row: Any, project: Project, now: datetime, with_gpu: Collection[int]) -> DatedRegression:
    began = row.blamed.committed_at
    repaired = row.recovered_by.committed_at if row.recovered_by else None
    return DatedRegression(
        regression=row,
        to_find=hours_between(began, row.opened_at),
        to_prove=hours_between(row.opened_at, row.proved_at),
        to_repair=hours_between(began, repaired),
        proof_hours=row.proof_seconds / 3600,
        training_hours=lost_training(row, project, repaired or now),
        on_gpu=row.series.configuration.pool_id in with_gpu,
    )


def lost_training(row: Regression, project: Project, until: datetime) -> float | None:
    """Of what is confirmed, and what slows training in proportion."""
    metric = row.series.metric
    proportional = metric.name in PROPORTIONAL_METRICS and not row.series.phase
    hours = hours_between(row.first_bad.committed_at, until)
    if not project.training_hours_per_week or not proportional or hours is None:
        return None
    if row.state != Regression.State.CONFIRMED or not row.ratio or row.ratio <= 0:
        return None
    slower = max(0.0, slowdown_ratio(row.ratio, metric) - 1)
    return project.training_hours_per_week * slower * hours / HOURS_A_WEEK


def group_by_culprit(dated: Sequence[DatedRegression]) -> list[CulpritGroup]:
    """In the order of the rows, the commits that are known to be to blame apart from those that may be."""
    groups: dict[tuple[int, bool], CulpritGroup] = {}
    for row in dated:
        commit = row.regression.blamed
        certain = row.regression.commits_left == 1 and row.regression.names_commit
        groups.setdefault((commit.pk, certain), CulpritGroup(commit, certain, [])).rows.append(row)
    return list(groups.values())


def summarize_times(dated: Sequence[DatedRegression]) -> list[tuple[str, str, int]]:
    """(what, how much, of how many): medians of times, sums of costs; a dash where nothing is known."""
    parts = (
        ("Time to find", [row.to_find for row in dated], True),
        ("Time to prove", [row.to_prove for row in dated], True),
        ("Time to repair", [row.to_repair for row in dated], True),
        ("Measured for proof", [row.proof_hours for row in dated], False),
        ("Training lost", [row.training_hours for row in dated], False),
    )
    summary = []
    for name, hours, is_time in parts:
        known = [value for value in hours if value is not None]
        value = (median(known) if is_time else sum(known)) if known else None
        summary.append((name, numbers.hours_text(value), len(known)))
    return summary
