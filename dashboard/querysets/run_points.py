"""What one run measured, and its neighbours: the runs of the same case at the commits beside its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Func, IntegerField, Q, QuerySet

from dashboard.models import Metric, Point, Run
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.querysets.series import OVERVIEW_METRIC
from dashboard.repositories import DETACHED

COLUMNS = (
    "series_id", "series__metric__name", "series__phase", "series__metric__kind", "series__metric__unit",
    "series__headline", "value", "low", "high", "tainted",
)  # fmt: skip


class RunPoint(NamedTuple):
    """A value of a run, in the series of this key; `phase` is empty for the whole step."""

    series: int
    metric: str
    phase: str
    kind: str
    unit: str
    headline: bool
    value: float
    low: float | None
    high: float | None
    tainted: bool
    # How many repetitions it is of; only read of the run before.
    samples: int = 0


@dataclass(frozen=True, slots=True)
class PreviousRun:
    """The run before another one of the same case, and by series what it counted and its headline points."""

    run: Run
    values: dict[int, float]
    headlines: dict[int, RunPoint]


def points_of_run(run: int) -> list[RunPoint]:
    return [RunPoint(*row) for row in _OF_RUN.read_rows(False, run=run)]


def neighbouring_runs(run: Run, points: Sequence[RunPoint]) -> tuple[Run | None, Run | None]:
    """The runs at the nearest measured commits before and after `run`'s on its branch; None where none is.

    Found through one series of the run, whose points are read by position: no history is walked. What
    force-pushes took away may be of several histories, so that nothing stands beside it.
    """
    if not points or run.commit.branch == DETACHED:
        return None, None
    own = next((point for point in points if point.metric == OVERVIEW_METRIC), points[0])
    here = run.commit.position
    rows = _NEIGHBOURS.read_rows(series=own.series, branch=run.commit.branch, position=here)
    before = next((row for row in rows if row.commit.position < here), None)
    return before, next((row for row in rows if row.commit.position > here), None)


def read_previous(run: Run) -> PreviousRun:
    """What is shown of `run` beside the run after it."""
    points = [RunPoint(*row) for row in _OF_RUN.read_rows(True, run=run.pk)]
    return PreviousRun(
        run,
        {point.series: point.value for point in points if point.kind == Metric.Kind.COUNTER},
        {point.series: point for point in points if point.headline},
    )


def _build_of_run(is_previous: bool) -> QuerySet[Any]:
    rows = Point.objects.filter(run=Parameter("run"))
    if not is_previous:
        return rows.values_list(*COLUMNS)
    rows = rows.filter(Q(series__metric__kind=Metric.Kind.COUNTER) | Q(series__headline=True))
    number = Func("samples", function="cardinality", output_field=IntegerField())
    return rows.annotate(repeated=number).values_list(*COLUMNS, "repeated")


def _build_neighbours() -> QuerySet[Run]:
    beside = Point.objects.filter(series=Parameter("series"), run__commit__branch=Parameter("branch"))
    before = beside.filter(position__lt=Parameter("position")).order_by("-position", "-run_id")
    after = beside.filter(position__gt=Parameter("position")).order_by("position", "-run_id")
    keys = before.values("run")[:1].union(after.values("run")[:1], all=True)
    rows = Run.objects.filter(pk__in_array=keys).select_related("commit")
    return rows.only("commit__position", "commit__hash", "commit__subject")


_OF_RUN: CompiledQuery[Any] = CompiledQuery(_build_of_run)
_NEIGHBOURS = CompiledQuery(_build_neighbours)
