"""Cases by commits: how each newest value stands to the case's base, from the latest states alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import median

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.metric_scale import NamedScale
from dashboard.models import Commit, SeriesLatest
from dashboard.pages.list_filters import matches_words
from dashboard.pages.paging import requested_page
from dashboard.pages.projects.case_grid import describe_direction, find_base, metric_choices, read_grid
from dashboard.pages.requested_project import requested_project
from dashboard.querysets.case_grid import CaseState
from dashboard.querysets.commits import values_until
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.metric_labels import metric_label

CASES_PER_PAGE = 30
COMMITS = 30
TAINTED = "\N{MULTIPLICATION SIGN}"
# From which change on a cell has a colour, and a stronger one.
STRENGTHS = (0.03, 0.10, 0.30)


@dataclass(frozen=True, slots=True)
class HeatCell:
    """`shade`: `worse-1` to `worse-3`, `better-1` to `better-3`, `same`; empty where it wasn't measured."""

    text: str = ""
    shade: str = ""


@dataclass(frozen=True, slots=True)
class HeatRow:
    state: CaseState
    cells: list[HeatCell]


@require_safe
def heatmap_page(request: HttpRequest, slug: str) -> HttpResponse:
    project = requested_project(request, slug)
    asked, states = read_grid(request, project)
    refused = asked.refused
    base_commit = find_base(project, asked.base) if asked.base else None
    if asked.base and base_commit is None:
        refused = f"base must be a tag or a hash of a commit that is known, not “{asked.base[:60]}”."
    shown = [state for state in states if matches_words(f"{state.case} {state.pool}", asked.words)]
    page = requested_page(request, shown, CASES_PER_PAGE)
    listed = list(page)
    latest = SeriesLatest.objects.in_bulk([state.series for state in listed])
    positions = newest_positions(latest.values())
    bases = choose_bases(listed, base_commit)
    commits = Commit.objects.filter(project=project, branch=project.branch, position__in=positions)
    scale = NamedScale(asked.metric)
    context = {
        "project": project,
        "tab": "heatmap",
        "signed": scale.has_sign,
        "grid": asked,
        "grid_refused": refused,
        "base_commit": base_commit,
        "metrics": metric_choices(asked),
        "metric_label": metric_label(asked.metric),
        "page": page,
        "rows": [
            HeatRow(
                state,
                shade_cells(
                    state, latest[state.series], bases.get(state.series), positions, signed=scale.has_sign
                ),
            )
            for state in listed
        ],
        "commits": list(commits.order_by("position")),
        "case_count": len(states),
    }
    return render(request, "projects/heatmap.html", context, status=400 if refused else 200)


def newest_positions(states: Iterable[SeriesLatest]) -> list[int]:
    """The newest positions that any of them was measured at, the oldest first, as charts draw them."""
    found = {position for latest in states for position in latest.recent_positions}
    return sorted(found)[-COMMITS:]


def choose_bases(states: Sequence[CaseState], base_commit: Commit | None) -> dict[int, float]:
    """By series: the chosen commit's value, or 30 days before; of a younger one its judged values' median."""
    if base_commit is not None:
        found = values_until(base_commit, [state.series for state in states])
        return {series: base.value for series, base in found.items()}
    bases = {}
    for state in states:
        judged = [value for value, tainted in zip(state.recent, state.tainted, strict=False) if not tainted]
        if state.base is not None:
            bases[state.series] = state.base
        elif judged:
            bases[state.series] = median(judged)
    return bases


def shade_cells(
    state: CaseState, latest: SeriesLatest, base: float | None, positions: Sequence[int], *, signed: bool
) -> list[HeatCell]:
    values: dict[int, tuple[float, bool]] = {}
    for position, value, tainted in zip(latest.recent_positions, state.recent, state.tainted, strict=False):
        # Of several runs of a commit the newest that counts.
        if position not in values or not tainted:
            values[position] = (value, tainted)
    return [
        shade_value(state, *values[position], base, signed=signed) if position in values else HeatCell()
        for position in positions
    ]


def shade_value(
    state: CaseState, value: float, tainted: bool, base: float | None, *, signed: bool
) -> HeatCell:
    """In per cent of the base. What is `signed` may be 0 or less: its differences count, not its ratios."""
    if tainted:
        return HeatCell(TAINTED, "same")
    if not base or (value / base <= 0 and not signed):
        return HeatCell("?", "same")
    change = (value - base) / abs(base)
    size = abs(change) if signed else exp(abs(log(value / base))) - 1
    strength = sum(size >= floor for floor in STRENGTHS)
    if not strength:
        return HeatCell("·", "same")
    return HeatCell(
        numbers.format_signed(100 * change), f"{describe_direction(change, state.better)}-{strength}"
    )
