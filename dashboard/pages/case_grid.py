"""The grid of a project's cases: filtered by words, grouped, sorted by what moved most against a base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import exp, log
from typing import Any

from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone

from dashboard.metric_scale import NamedScale
from dashboard.models import Change, Commit, Project, SeriesLatest
from dashboard.pages.list_filters import FilterError, matches_words, read_choice
from dashboard.pages.paging import requested_page
from dashboard.querysets import regressions
from dashboard.querysets.case_grid import CaseState, headlines_of, read_case_states
from dashboard.querysets.commits import values_until
from dashboard.querysets.series import OVERVIEW_METRIC
from dashboard.sentences import labels, numbers

CASES_PER_PAGE = 40
# Up to so many cases each value has its trend beside it, and they stand in the order of their names.
FEW_CASES = 12
SORTS = ("name", "moved", "measured")
ENOUGH_VALUES = 5
STALE_AFTER = timedelta(days=14)
BENCHMARK = "benchmark"


@dataclass(frozen=True, slots=True)
class SeriesCell:
    """The latest state of a series, how it stands to the base, and the change of an open regression in it."""

    latest: SeriesLatest
    ratio: float | None
    change: Change | None

    @property
    def movement(self) -> str:
        """`+3.1 %`; empty where nothing is known of the base."""
        return describe_ratio(self.latest.series.metric.name, self.ratio)


@dataclass(frozen=True, slots=True)
class GridRow:
    """A case in one pool. `ratio`: of the chosen metric, now to the base; `lacking` says why none."""

    state: CaseState
    ratio: float | None
    movement: str
    word: str
    lacking: str
    group: str
    cells: list[SeriesCell | None]


@dataclass(frozen=True, slots=True)
class GridRequest:
    """What the address asks for; `refused` is the sentence where it asks for what isn't known."""

    words: str = ""
    metric: str = OVERVIEW_METRIC
    sort: str = ""
    group: str = ""
    base: str = ""
    refused: str = ""


def read_grid_request(request: HttpRequest) -> GridRequest:
    words = request.GET.get("q", "").strip()[:200].replace("\x00", " ")
    try:
        return GridRequest(
            words=words,
            metric=read_choice(request, "metric", labels.METRIC_ORDER) or OVERVIEW_METRIC,
            sort=read_choice(request, "sort", SORTS),
            group=request.GET.get("group", "").strip()[:100].replace("\x00", " "),
            base=request.GET.get("base", "").strip()[:250].replace("\x00", " "),
        )
    except FilterError as error:
        return GridRequest(words=words, refused=str(error))


def grid_context(request: HttpRequest, project: Project) -> dict[str, Any]:
    """What the templates of the grid need, and `states`: every case by the metric that all have."""
    asked = read_grid_request(request)
    states = read_case_states(project, asked.metric)
    refused = asked.refused
    base_commit = find_base(project, asked.base) if asked.base else None
    if asked.base and base_commit is None:
        refused = f"base must be a tag or a hash of a commit that is known, not “{asked.base[:60]}”."
    params = sorted({name for state in states for name in parameters_of(state)})
    if asked.group and asked.group not in (BENCHMARK, *params):
        refused = f"group must be one of {', '.join((BENCHMARK, *params))}, not “{asked.group[:60]}”."
    shown = [state for state in states if matches_words(f"{state.case} {state.pool}", asked.words)]
    rows = _order_rows(_measure_rows(asked, shown, base_commit), asked)
    page = requested_page(request, rows, CASES_PER_PAGE)
    columns, filled = _fill_cells(project, list(page), base_commit)
    return {
        "grid": asked,
        "states": states,
        "grid_refused": refused,
        "base_commit": base_commit,
        "cases": page,
        "columns": columns,
        "rows": filled,
        "groups": summarize_groups(rows) if asked.group else {},
        "group_names": [BENCHMARK, *params],
        "sorts": SORTS,
        "metrics": [(name, labels.metric_label(name)) for name in labels.METRIC_ORDER],
        "metric_label": labels.metric_label(asked.metric),
        "dense": len(rows) > FEW_CASES,
        "case_count": len(states),
    }


def find_base(project: Project, text: str) -> Commit | None:
    """A commit of the project's branch by its tag or by the beginning of its hash."""
    named = Q(tags__contains=[text]) | Q(hash__startswith=text.lower())
    rows = Commit.objects.filter(named, project=project, branch=project.branch)
    return rows.order_by("-position").first()


def parameters_of(state: CaseState) -> dict[str, str]:
    """`batch=256,compile=true` as names and values."""
    pairs = (part.partition("=") for part in state.case.key.split(",") if part)
    return {name: value for name, _, value in pairs}


def _measure_rows(
    asked: GridRequest, states: Sequence[CaseState], base_commit: Commit | None
) -> list[GridRow]:
    bases = base_values(states, base_commit)
    now = timezone.now()
    rows = []
    for state in states:
        ratio = ratio_to_base(asked.metric, state.current, bases.get(state.series))
        rows.append(
            GridRow(
                state=state,
                ratio=ratio,
                movement=describe_ratio(asked.metric, ratio),
                word=describe_direction(ratio, state.better),
                lacking=describe_lack(state, ratio, base_commit, now),
                group=group_of(state, asked.group),
                cells=[],
            )
        )
    return rows


def base_values(states: Sequence[CaseState], base_commit: Commit | None) -> dict[int, float]:
    """By series: 30 days before its newest commit, or at the commit that was chosen."""
    if base_commit is None:
        return {state.series: state.base for state in states if state.base is not None}
    found = values_until(base_commit, [state.series for state in states])
    return {series: base.value for series, base in found.items()}


def ratio_to_base(metric: str, current: float | None, base: float | None) -> float | None:
    if current is None or base is None:
        return None
    ratio = NamedScale(metric).ratio(base, current)
    # Values on both sides of 0 have differences alone.
    return ratio if ratio is not None and ratio > 0 else None


def describe_ratio(metric: str, ratio: float | None) -> str:
    if ratio is None:
        return ""
    if NamedScale(metric).is_exponent:
        return numbers.format_exponent_difference(ratio)
    return numbers.format_percent_change(ratio)


def describe_direction(ratio: float | None, better: str) -> str:
    if ratio is None or ratio == 1:
        return ""
    return "worse" if (ratio > 1) == (better == "lower") else "better"


def describe_lack(state: CaseState, ratio: float | None, base_commit: Commit | None, now: datetime) -> str:
    """Why a case can't be compared, and since when; also where it can, but nothing was measured lately."""
    days = (now - state.updated_at).days
    newest = f"newest {days} d ago" if days else "newest within a day"
    if ratio is None and state.current is None:
        return f"not enough data: no untainted value, {newest}"
    if ratio is None and state.measured < ENOUGH_VALUES:
        return f"not enough data: {state.measured} of {ENOUGH_VALUES} values, {newest}"
    if ratio is None:
        return "not measured at the base or before it" if base_commit else "nothing 30 days before to compare"
    return f"not measured for {days} d" if now - state.updated_at > STALE_AFTER else ""


def group_of(state: CaseState, group: str) -> str:
    if not group:
        return ""
    if group == BENCHMARK:
        return state.case.benchmark
    value = parameters_of(state).get(group)
    return f"{group}={value}" if value is not None else f"without {group}"


def _order_rows(rows: list[GridRow], asked: GridRequest) -> list[GridRow]:
    """By group, and within it as asked for: of many cases what moved most comes first by itself."""
    sort = asked.sort or ("moved" if len(rows) > FEW_CASES else "name")
    if sort == "moved":
        rows = sorted(rows, key=lambda row: -abs(log(row.ratio)) if row.ratio else 1.0)
    elif sort == "measured":
        rows = sorted(rows, key=lambda row: row.state.updated_at)
    return sorted(rows, key=lambda row: row.group) if asked.group else rows


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """How many cases a group has, and the geometric mean of how they stand to the base."""

    cases: int
    movement: str


def summarize_groups(rows: Sequence[GridRow]) -> dict[str, GroupSummary]:
    ratios: dict[str, list[float]] = {}
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.group] = counts.get(row.group, 0) + 1
        if row.ratio is not None:
            ratios.setdefault(row.group, []).append(log(row.ratio))
    return {
        group: GroupSummary(
            cases=count,
            movement=numbers.format_percent_change(exp(sum(known) / len(known)))
            if (known := ratios.get(group))
            else "",
        )
        for group, count in counts.items()
    }


def _fill_cells(
    project: Project, rows: Sequence[GridRow], base_commit: Commit | None
) -> tuple[list[str], list[GridRow]]:
    """(columns, rows with their cells): all headline metrics of the cases of one page."""
    found = headlines_of(row.state.configuration for row in rows)
    changes = regressions.changes_by_series(
        project, [latest.pk for states in found.values() for latest in states]
    )
    by_row = [
        {(latest.series.metric.name, latest.series.phase): latest for latest in states}
        for states in (found.get(row.state.configuration, []) for row in rows)
    ]
    columns = shown_columns(by_row)
    filled = []
    for row, states in zip(rows, by_row, strict=True):
        cells = [
            _make_cell(states[column], changes, compared=base_commit is None) if column in states else None
            for column in columns
        ]
        filled.append(GridRow(row.state, row.ratio, row.movement, row.word, row.lacking, row.group, cells))
    return [labels.metric_label(*column) for column in columns], filled


def _make_cell(latest: SeriesLatest, changes: Mapping[int, Change], *, compared: bool) -> SeriesCell:
    metric = latest.series.metric.name
    ratio = ratio_to_base(metric, latest.current_value, latest.base_value) if compared else None
    return SeriesCell(latest, ratio, changes.get(latest.pk))


def shown_columns(rows: Sequence[Mapping[tuple[str, str], Any]]) -> list[tuple[str, str]]:
    """The metrics that any row has; phases, which are a benchmark's own, where every row has them."""
    columns = {column for cells in rows for column in cells}
    kept = [column for column in columns if not column[1] or all(column in cells for cells in rows)]
    return sorted(kept, key=lambda column: labels.metric_sort_key(*column))
