"""What the page of a series draws: narrow rows of long stretches, all details of a few points, what happened
at commits, and which other lines may stand beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from statistics import median
from typing import Any, NamedTuple

from django.db.models import Case as Choose
from django.db.models import FilteredRelation, IntegerField, Q, Value, When

from dashboard.models import Commit, Environment, Limit, Point, Run, Series

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
    rows = Point.objects.filter(series=series, run__commit__branch=branch)
    if until is not None:
        rows = rows.filter(position__lte=until)
    narrow = rows.values_list(
        "position", "run_id", "value", "tainted", "run__environment_id", "run__machine__name"
    )
    return [TrendRow(*row) for row in narrow.order_by("-position", "-run_id")[:most]][::-1]


def rows_beside(
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


def points_of_runs(series: Iterable[int], runs: Iterable[int]) -> list[Point]:
    """The points of these series that these runs left, with all that is said of them."""
    rows = Point.objects.filter(series__in=set(series), run__in=set(runs)).select_related("run__commit")
    return list(
        rows.only(
            "series", "position", "value", "low", "high", "samples", "tainted", "run__warning_codes",
            "run__commit__hash", "run__commit__subject", "run__commit__committed_at", "run__commit__fork",
            "run__commit__branch",
        )
    )  # fmt: skip


def commit_events(series: Series, branch: str, least: int, most: int) -> list[CommitEvent]:
    """The newest tagged commits and failed runs between two positions, both included, oldest first."""
    failed = Q(runs__configuration=series.configuration_id, runs__state=Run.State.FAILED)
    rows = (
        Commit.objects.filter(
            project=series.case.project_id, branch=branch, position__range=(least, most)
        )
        .annotate(failed=FilteredRelation("runs", condition=failed))
        .filter(Q(failed__isnull=False) | ~Q(tags=[]))
        .order_by("-position", "-failed__pk")
        .values_list(
            "position", "hash", "subject", "committed_at", "tags",
            "failed__pk", "failed__failure", "failed__reason",
        )
    )  # fmt: skip
    return [CommitEvent(*row) for row in rows[:MOST_EVENTS]][::-1]


def limit_rows(series: Series, least: int, most: int) -> list[LimitRow]:
    """How runs between two positions, both included, stood to the limit, on the project's branch, oldest
    first."""
    rows = Limit.objects.filter(
        series=series, position__range=(least, most), run__commit__branch=series.case.project.branch
    )
    narrow = rows.values_list("position", "run_id", "minimum", "maximum", "crossed")
    return [LimitRow(*row) for row in narrow.order_by("-position", "-run_id")[:MOST_LIMITS]][::-1]


def related_series(series: Series, chosen: Iterable[int] = ()) -> list[Series]:
    """The series of the same configuration, and those of the project that have the same metric and phase:
    first those that were `chosen`, then other pools and versions of the case, then other cases of the
    benchmark, then all others."""
    own, case = series.configuration, series.configuration.case
    same_metric = Q(metric=series.metric_id, phase=series.phase, configuration__case__project=case.project_id)
    rank = Choose(
        When(same_metric, pk__in=list(chosen), then=Value(-1)),
        When(configuration=own.pk, then=Value(0)),
        When(configuration__case=case.pk, then=Value(1)),
        When(configuration__case__benchmark=case.benchmark, then=Value(2)),
        default=Value(3),
        output_field=IntegerField(),
    )
    rows = Series.objects.filter(Q(configuration=own.pk) | same_metric).annotate(rank=rank)
    rows = rows.select_related("metric", "configuration__case", "configuration__pool", "latest")
    return list(
        rows.order_by("rank", "configuration__case__benchmark", "configuration__case__key", "pk")[
            :MOST_RELATED
        ]
    )


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


class ExportedPoint(NamedTuple):
    """A point as files have it."""

    position: int
    hash: str
    committed_at: datetime
    run: int
    value: float
    low: float | None
    high: float | None
    tainted: bool
    warning_codes: list[str]


def exported_points(series: Series, runs: Sequence[int]) -> list[ExportedPoint]:
    """The points of a series that these runs left, oldest first."""
    rows = Point.objects.filter(series=series, run__in=runs).order_by("position", "run_id")
    return [
        ExportedPoint(*row)
        for row in rows.values_list(
            "position", "run__commit__hash", "run__commit__committed_at", "run_id", "value", "low", "high",
            "tainted", "run__warning_codes",
        )
    ]  # fmt: skip


def environment_values(keys: Iterable[int | None]) -> dict[int | None, dict[str, Any]]:
    """What is compared of environments, by their keys; no query where there is no key."""
    known = [key for key in keys if key is not None]
    return dict(Environment.objects.filter(pk__in=known).values_list("pk", "values")) if known else {}
