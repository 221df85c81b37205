"""Points as the pages of a series and its pictures read them: rows, with what they name of their runs and
commits. Of hundreds of points the objects of three models would take longer to make than the page."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import QuerySet

from dashboard.models import Commit, Point, Series
from dashboard.page_addresses import page_address
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter

# Of one commit: it may have been measured several times.
MOST_OF_COMMIT = 10
COLUMNS = (
    "series_id", "run_id", "position", "value", "low", "high", "samples", "tainted", "run__warning_codes",
    "run__environment_id", "run__machine__name", "run__commit__hash", "run__commit__subject",
    "run__commit__committed_at", "run__commit__fork",
)  # fmt: skip


class PointCommit(NamedTuple):
    """What is named of the commit of a point. `fork`: the position at which its branch left the project's."""

    hash: str
    subject: str
    committed_at: datetime
    fork: int | None

    @property
    def short(self) -> str:
        return self.hash[:10]


class SeriesPoint(NamedTuple):
    """A point, of the run and the series of these keys; `environment` and `machine` are the key and the name
    of what the run was measured under."""

    series: int
    run: int
    position: int
    value: float
    low: float | None
    high: float | None
    samples: list[float]
    tainted: bool
    warning_codes: list[str]
    environment: int | None
    machine: str | None
    commit: PointCommit

    @property
    def run_address(self) -> str:
        return page_address("run", self.run)


def points_of_runs(series: Iterable[int], runs: Iterable[int]) -> list[SeriesPoint]:
    """The points of these series that these runs left."""
    return _make_points(_OF_RUNS.read_values(tuple, series=list(set(series)), runs=list(set(runs))))


def newest_points(series: Series, most: int, until: int | None = None, branch: str = "") -> list[SeriesPoint]:
    """The newest `most` points on a branch, the project's unless it is named, oldest first; none after
    position `until`."""
    values = {"series": series.pk, "branch": branch or series.case.project.branch, "until": until}
    return _make_points(_NEWEST.read_values(tuple, most, until is not None, **values))[::-1]


def newest_untainted(series: Series) -> SeriesPoint | None:
    """The newest point on the project's branch that isn't kept out of judgement."""
    rows = _untainted_rows(series).filter(run__commit__branch=series.case.project.branch)
    return next(iter(_make_points(rows.order_by("-position", "-run_id")[:1])), None)


def points_at_commit(series: Series, commit: Commit) -> list[SeriesPoint]:
    """The untainted points of a commit, the newest first."""
    rows = _untainted_rows(series).filter(position=commit.position, run__commit=commit)
    return _make_points(rows.order_by("-run_id")[:MOST_OF_COMMIT])


def points_at_fork(series: Series, fork: int) -> list[SeriesPoint]:
    """Those of the newest measured commit of the project's branch that a branch has in its history."""
    main = series.case.project.branch
    rows = _untainted_rows(series).filter(run__commit__branch=main, position__lte=fork)
    newest = _make_points(rows.order_by("-position", "-run_id")[:MOST_OF_COMMIT])
    return [point for point in newest if point.position == newest[0].position]


def _make_points(rows: Iterable[Any]) -> list[SeriesPoint]:
    *own, _hash, _subject, _committed_at, _fork = COLUMNS
    return [SeriesPoint._make((*row[: len(own)], PointCommit._make(row[len(own) :]))) for row in rows]


def _untainted_rows(series: Series) -> Any:
    return Point.objects.filter(series=series, tainted=False).values_list(*COLUMNS)


def _build_of_runs() -> QuerySet[Any]:
    rows = Point.objects.filter(series__in_array=Parameter("series"), run__in_array=Parameter("runs"))
    return rows.values_list(*COLUMNS)


def _build_newest(most: int, is_bounded: bool) -> QuerySet[Any]:
    rows = Point.objects.filter(series=Parameter("series"), run__commit__branch=Parameter("branch"))
    if is_bounded:
        rows = rows.filter(position__lte=Parameter("until"))
    return rows.order_by("-position", "-run_id").values_list(*COLUMNS)[:most]


_OF_RUNS: CompiledQuery[Any] = CompiledQuery(_build_of_runs)
_NEWEST: CompiledQuery[Any] = CompiledQuery(_build_newest)
