"""The grid of a project's cases: filtered by words, grouped, sorted by what moved most against a base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import exp
from typing import Any

from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone

from dashboard.metric_scale import NamedScale
from dashboard.models import Change, Commit, Project, SeriesLatest
from dashboard.pages.list_filters import FilterError, matches_words, read_choice
from dashboard.pages.paging import requested_page
from dashboard.querysets import regressions
from dashboard.querysets.case_grid import (
    CaseState,
    count_cases_by_metric,
    headlines_of,
    read_case_states,
)
from dashboard.querysets.commits import values_until
from dashboard.querysets.series import OVERVIEW_METRIC
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.change_sizes import describe_movement
from dashboard.sentences.formatting.metric_labels import METRIC_ORDER, metric_label, metric_sort_key

CASES_PER_PAGE = 40
# Up to so many cases each value has its trend beside it, and they stand in the order of their names.
FEW_CASES = 12
# As many headline metrics as a case has at most: imported benchmarks have some of their own each.
MOST_COLUMNS = 6
COMMON_SHARE = 0.5
SORTS = ("name", "moved", "measured")
ENOUGH_VALUES = 5
STALE_AFTER = timedelta(days=14)
BENCHMARK = "benchmark"


@dataclass(frozen=True, slots=True)
class SeriesCell:
    """The latest state of a series, how it moved since the base, and the change of an open regression in it.

    `movement`: `+3.1 %`; empty where nothing is known of the base.
    """

    latest: SeriesLatest
    movement: str
    change: Change | None


@dataclass(frozen=True, slots=True)
class Movement:
    """From a base until now: `distance` as of NamedScale, which is no logarithm where they lack a ratio.

    `is_shown`: its text tells a difference.
    """

    distance: float
    lacks_ratio: bool
    text: str
    is_shown: bool = True

    def direction(self, better: str) -> str:
        """`worse` or `better`; empty of what reads as no difference at all."""
        return describe_direction(self.distance, better) if self.is_shown else ""


@dataclass(frozen=True, slots=True)
class GridRow:
    """A case in one pool. `moved`: how the metric moved since the base; `lacking` says why it isn't known."""

    state: CaseState
    moved: Movement | None
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


def read_grid(
    request: HttpRequest, project: Project, *, takes_signed: bool = True
) -> tuple[GridRequest, list[CaseState]]:
    """What the address asks for, and the cases by its metric.

    Where it names none: throughput if any case has it, else the metric that most cases have, as those of an
    imported history. `takes_signed`: whether that may be one whose values may be 0 or less.
    """
    asked = _read_grid_request(request, project)
    states = read_case_states(project, asked.metric)
    if states or request.GET.get("metric"):
        return asked, states
    counts = count_cases_by_metric(project)
    metrics = [name for name in counts if takes_signed or not NamedScale(name).has_sign]
    metric = min(metrics, key=lambda name: (-counts[name], metric_sort_key(name)), default=asked.metric)
    if metric == asked.metric:
        return asked, states
    return replace(asked, metric=metric), read_case_states(project, metric)


def metric_choices(asked: GridRequest, names: Sequence[str] = METRIC_ORDER) -> list[tuple[str, str]]:
    """(name, label) of what a grid can be shown by, and of what it is shown by if that is none of them."""
    own = [] if asked.metric in METRIC_ORDER else [asked.metric]
    return [(name, metric_label(name)) for name in (*names, *own)]


def _read_grid_request(request: HttpRequest, project: Project) -> GridRequest:
    named = request.GET.get("metric", "").strip()
    # Beside these a project's scripts may report their own, and an import bring others.
    own = count_cases_by_metric(project) if named and named not in METRIC_ORDER else ()
    words = request.GET.get("q", "").strip()[:200].replace("\x00", " ")
    try:
        return GridRequest(
            words=words,
            metric=read_choice(request, "metric", tuple(dict.fromkeys((*METRIC_ORDER, *own))))
            or OVERVIEW_METRIC,
            sort=read_choice(request, "sort", SORTS),
            group=request.GET.get("group", "").strip()[:100].replace("\x00", " "),
            base=request.GET.get("base", "").strip()[:250].replace("\x00", " "),
        )
    except FilterError as error:
        return GridRequest(words=words, refused=str(error))


def grid_context(request: HttpRequest, project: Project) -> dict[str, Any]:
    """What the templates of the grid need, and `states`: every case by the metric that all have."""
    asked, states = read_grid(request, project)
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
    columns, rarer, filled = _fill_cells(project, list(page), base_commit)
    return {
        "grid": asked,
        "states": states,
        "grid_refused": refused,
        "base_commit": base_commit,
        "cases": page,
        "columns": columns,
        "rarer_metrics": rarer,
        "rows": filled,
        "groups": summarize_groups(rows, asked.metric) if asked.group else {},
        "group_names": [BENCHMARK, *params],
        "sorts": SORTS,
        "metrics": metric_choices(asked),
        "metric_label": metric_label(asked.metric),
        # Its noise is no share of it: nothing says by that which case is worth its time.
        "is_signed": NamedScale(asked.metric).has_sign,
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
        moved = measure_movement(asked.metric, state.unit, bases.get(state.series), state.current)
        rows.append(
            GridRow(
                state=state,
                moved=moved,
                word=moved.direction(state.better) if moved else "",
                lacking=describe_lack(state, moved is not None, base_commit, now),
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


def measure_movement(metric: str, unit: str, base: float | None, current: float | None) -> Movement | None:
    """None where one of them isn't known."""
    if base is None or current is None:
        return None
    scale = NamedScale(metric)
    text = describe_movement(metric, unit, base, current)
    unmoved = describe_movement(metric, unit, base, base)
    lacks_ratio = scale.lacks_ratio(base, current)
    return Movement(scale.distance(base, current), lacks_ratio, text, text != unmoved)


def describe_direction(distance: float, better: str) -> str:
    if distance == 0:
        return ""
    return "worse" if (distance > 0) == (better == "lower") else "better"


def describe_lack(state: CaseState, is_compared: bool, base_commit: Commit | None, now: datetime) -> str:
    """Why a case can't be compared, and since when; also where it can, but nothing was measured lately."""
    days = (now - state.updated_at).days
    newest = f"newest {days} d ago" if days else "newest within a day"
    if not is_compared and state.current is None:
        return f"not enough data: no untainted value, {newest}"
    if not is_compared and state.measured < ENOUGH_VALUES:
        return f"not enough data: {state.measured} of {ENOUGH_VALUES} values, {newest}"
    if not is_compared:
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
        rows = sorted(rows, key=lambda row: 1.0 if row.moved is None else -abs(row.moved.distance))
    elif sort == "measured":
        rows = sorted(rows, key=lambda row: row.state.updated_at)
    return sorted(rows, key=lambda row: row.group) if asked.group else rows


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """How many cases a group has, and how far they moved in the mean, the geometric one of ratios."""

    cases: int
    movement: str


def summarize_groups(rows: Sequence[GridRow], metric: str) -> dict[str, GroupSummary]:
    groups: dict[str, list[GridRow]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    return {
        group: GroupSummary(len(members), mean_movement(members, metric)) for group, members in groups.items()
    }


def mean_movement(rows: Sequence[GridRow], metric: str) -> str:
    """Of those that can be compared; of what has ratios, of those alone."""
    is_signed = NamedScale(metric).has_sign
    known = [row.moved.distance for row in rows if row.moved and row.moved.lacks_ratio == is_signed]
    if not known:
        return ""
    mean = sum(known) / len(known)
    if is_signed:
        return numbers.format_signed_quantity(mean, rows[0].state.unit)
    return numbers.format_percent_change(exp(mean))


def _fill_cells(
    project: Project, rows: Sequence[GridRow], base_commit: Commit | None
) -> tuple[list[str], list[tuple[str, str]], list[GridRow]]:
    """(columns, names and labels of rarer metrics, rows with their cells): the headline metrics of the cases
    of one page, of many those that most of the cases have."""
    found = headlines_of(row.state.configuration for row in rows)
    changes = regressions.changes_by_series(
        project, [latest.pk for states in found.values() for latest in states]
    )
    by_row = [
        {(latest.series.metric.name, latest.series.phase): latest for latest in states}
        for states in (found.get(row.state.configuration, []) for row in rows)
    ]
    every = shown_columns(by_row)
    columns = every
    if len(every) > MOST_COLUMNS:
        least = COMMON_SHARE * len(by_row)
        columns = [column for column in every if sum(column in cells for cells in by_row) >= least]
    filled = []
    for row, states in zip(rows, by_row, strict=True):
        cells = [
            _make_cell(states[column], changes, compared=base_commit is None) if column in states else None
            for column in columns
        ]
        filled.append(replace(row, cells=cells))
    rarer = [(name, metric_label(name)) for name, phase in every if (name, phase) not in columns]
    return [metric_label(*column) for column in columns], rarer, filled


def _make_cell(latest: SeriesLatest, changes: Mapping[int, Change], *, compared: bool) -> SeriesCell:
    metric, base = latest.series.metric, latest.base_value if compared else None
    moved = measure_movement(metric.name, metric.unit, base, latest.current_value)
    return SeriesCell(latest, moved.text if moved else "", changes.get(latest.pk))


def shown_columns(rows: Sequence[Mapping[tuple[str, str], Any]]) -> list[tuple[str, str]]:
    """The metrics that any row has; phases, which are a benchmark's own, where every row has them."""
    columns = {column for cells in rows for column in cells}
    kept = [column for column in columns if not column[1] or all(column in cells for cells in rows)]
    return sorted(kept, key=lambda column: metric_sort_key(*column))
