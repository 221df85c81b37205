"""What the page of a series draws: narrow rows of long stretches, what happened at commits, and which other
lines may stand beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from statistics import median
from typing import Any, NamedTuple

from django.db.models import Case as Choose
from django.db.models import F, FilteredRelation, IntegerField, Q, QuerySet, Value, When

from dashboard.models import Commit, Environment, Limit, Point, Run, Series
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter

# Of the lines that may be chosen, and of the newest things that happened.
MOST_RELATED, MOST_EVENTS, MOST_LIMITS = 400, 60, 10_000
# Of all lines beside the page's own together.
MOST_ROWS_BESIDE = 20_000


class TrendRow(NamedTuple):
    """What a point has that a long line needs; `environment` and `machine` are the key and the name of what
    its run was measured under."""

    position: int
    run: int
    value: float
    tainted: bool
    environment: int | None
    machine: str | None


class CommitEvent(NamedTuple):
    """A commit that has tags, or whose run left no point: `run` is then the failed one."""

    position: int
    hash: str
    subject: str
    committed_at: datetime
    tags: list[str]
    run: int | None
    failure: str
    reason: str


class LimitRow(NamedTuple):
    """How a run stood to the bounds that its manifest set."""

    position: int
    run: int
    minimum: float | None
    maximum: float | None
    crossed: bool


def newest_rows(series: Series, branch: str, most: int, until: int | None = None) -> list[TrendRow]:
    """Of the newest `most` points on a branch, oldest first; none after position `until`."""
    values = {"series": series.pk, "branch": branch, "until": until}
    return _NEWEST_ROWS.read_values(TrendRow._make, most, until is not None, **values)[::-1]


def _build_newest_rows(most: int, is_bounded: bool) -> QuerySet[Any]:
    rows = Point.objects.filter(series=Parameter("series"), run__commit__branch=Parameter("branch"))
    if is_bounded:
        rows = rows.filter(position__lte=Parameter("until"))
    narrow = rows.values_list(
        "position", "run_id", "value", "tainted", "run__environment_id", "run__machine__name"
    )
    return narrow.order_by("-position", "-run_id")[:most]


_NEWEST_ROWS: CompiledQuery[Any] = CompiledQuery(_build_newest_rows, binary=True)


def overlaid_rows(
    lines: Sequence[tuple[Series, str]], least: int, most: int | None
) -> list[list[tuple[int, int, float]]]:
    """(position, run, value) of the untainted points of each of these lines, oldest first, in one query."""
    chosen = Q(pk=None)
    for series, branch in lines:
        chosen |= Q(series=series, run__commit__branch=branch)
    rows = Point.objects.filter(chosen, position__gte=least, tainted=False)
    if most is not None:
        rows = rows.filter(position__lte=most)
    narrow = rows.values_list("series_id", "run__commit__branch", "position", "run_id", "value")
    by_line: dict[tuple[int, str], list[tuple[int, int, float]]] = {}
    for series_id, branch, position, run, value in narrow.order_by("-position", "-run_id")[:MOST_ROWS_BESIDE]:
        by_line.setdefault((series_id, branch), []).append((position, run, value))
    return [by_line.get((series.pk, branch), [])[::-1] for series, branch in lines]


def commit_events(series: Series, branch: str, least: int, most: int) -> list[CommitEvent]:
    """The newest tagged commits and failed runs between two positions, both included, oldest first."""
    values = {"project": series.case.project_id, "configuration": series.configuration_id}
    rows = _COMMIT_EVENTS.read_rows(branch=branch, least=least, most=most, **values)
    return [CommitEvent._make(row) for row in rows][::-1]


def _build_commit_events() -> QuerySet[Any]:
    failed = Q(runs__configuration=Parameter("configuration"), runs__state=Run.State.FAILED)
    span = (Parameter("least"), Parameter("most"))
    rows = (
        Commit.objects.filter(project=Parameter("project"), branch=Parameter("branch"), position__range=span)
        .annotate(failed=FilteredRelation("runs", condition=failed))
        .filter(Q(failed__isnull=False) | ~Q(tags=[]))
        .order_by("-position", "-failed__pk")
        .values_list(
            "position", "hash", "subject", "committed_at", "tags",
            "failed__pk", "failed__failure", "failed__reason",
        )
    )  # fmt: skip
    return rows[:MOST_EVENTS]


_COMMIT_EVENTS: CompiledQuery[Any] = CompiledQuery(_build_commit_events)


def limit_rows(series: Series, least: int, most: int) -> list[LimitRow]:
    """How runs between two positions, both included, stood to the limit, on the project's branch, oldest
    first."""
    values = {"series": series.pk, "branch": series.case.project.branch, "least": least, "most": most}
    return [LimitRow._make(row) for row in _LIMIT_ROWS.read_rows(**values)][::-1]


def _build_limit_rows() -> QuerySet[Any]:
    span = (Parameter("least"), Parameter("most"))
    rows = Limit.objects.filter(
        series=Parameter("series"), position__range=span, run__commit__branch=Parameter("branch")
    )
    narrow = rows.values_list("position", "run_id", "minimum", "maximum", "crossed")
    return narrow.order_by("-position", "-run_id")[:MOST_LIMITS]


_LIMIT_ROWS: CompiledQuery[Any] = CompiledQuery(_build_limit_rows)


def related_series(series: Series, chosen: Iterable[int] = ()) -> list[Series]:
    """The series of the same configuration, and those of the project that have the same metric and phase:
    first those that were `chosen`, then other pools and versions of the case, then other cases of the
    benchmark, then all others. Each with its `newest_value`; None where it has none."""
    case = series.case
    return _RELATED.read_rows(
        metric=series.metric_id,
        phase=series.phase,
        project=case.project_id,
        case=case.pk,
        benchmark=case.benchmark,
        configuration=series.configuration_id,
        chosen=list(chosen),
    )


def _build_related() -> QuerySet[Series]:
    same_metric = Q(
        metric=Parameter("metric"),
        phase=Parameter("phase"),
        configuration__case__project=Parameter("project"),
    )
    rank = Choose(
        When(same_metric, pk__in_array=Parameter("chosen"), then=Value(-1)),
        When(configuration=Parameter("configuration"), then=Value(0)),
        When(configuration__case=Parameter("case"), then=Value(1)),
        When(configuration__case__benchmark=Parameter("benchmark"), then=Value(2)),
        default=Value(3),
        output_field=IntegerField(),
    )
    rows = Series.objects.filter(Q(configuration=Parameter("configuration")) | same_metric).annotate(
        rank=rank
    )
    # A hundred series, of whose latest states pages ask one value.
    rows = rows.select_related("metric", "configuration__case", "configuration__pool").annotate(
        newest_value=F("latest__value")
    )
    order = ("rank", "configuration__case__benchmark", "configuration__case__key", "pk")
    return rows.order_by(*order)[:MOST_RELATED]


_RELATED = CompiledQuery(_build_related)


def values_at_commit(series: Sequence[Series], commit: Commit) -> dict[int, float]:
    """The median of the untainted values of each series at a commit, by its key."""
    rows = Point.objects.filter(
        series__in=[item.pk for item in series], position=commit.position, run__commit=commit, tainted=False
    )
    by_series: dict[int, list[float]] = {}
    for series_id, value in rows.order_by("-run_id").values_list("series_id", "value"):
        by_series.setdefault(series_id, []).append(value)
    return {series_id: float(median(values)) for series_id, values in by_series.items()}


def phase_values(series: Sequence[Series], runs: Sequence[int]) -> dict[tuple[int, int], float]:
    """The values that these runs left in these series, by series and run."""
    rows = Point.objects.filter(series__in=[item.pk for item in series], run__in=runs)
    return {
        (series_id, run): value for series_id, run, value in rows.values_list("series_id", "run_id", "value")
    }


def environment_values(keys: Iterable[int | None]) -> dict[int | None, dict[str, Any]]:
    """What is compared of environments, by their keys; no query where there is no key."""
    known = [key for key in keys if key is not None]
    return dict(_ENVIRONMENTS.read_rows(keys=known)) if known else {}


_ENVIRONMENTS: CompiledQuery[Any] = CompiledQuery(
    lambda: Environment.objects.filter(pk__in_array=Parameter("keys")).values_list("pk", "values")
)
