"""The rows that a judgement begins and ends with, by queries that are compiled once in a process."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from dashboard.models import Change, Commit, Experiment, GuardResult, Point, Project, Regression, Run, Series
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.postgresql.prepared_statements import preparing_statements
from dashboard.regressions.series.judged_series import JUDGED

_UNJUDGED_RUN = CompiledQuery(
    lambda: Run.objects.select_related("commit__project", "configuration").filter(
        pk=Parameter("pk"), state=Run.State.DONE, judged_at=None
    )
)
# Not FOR UPDATE: that waits for, and holds up, every row that is inserted with this project as its key.
_LOCKED_PROJECT = CompiledQuery(
    lambda: Project.objects.select_for_update(no_key=True).filter(pk=Parameter("pk"))
)

# What of a series, and of what it belongs to, experiments and explanations ask for.
_SERIES = CompiledQuery(
    lambda: Series.objects.select_related("metric", "configuration__case", "configuration__pool").filter(
        pk=Parameter("pk")
    )
)
_COMMITS = CompiledQuery(lambda: Commit.objects.filter(pk__in_array=Parameter("keys")))

_MARK_JUDGED = 'UPDATE "dashboard_run" SET judged_at = %s WHERE id = %s AND judged_at IS NULL'
_MARK_APPLIED = """
UPDATE dashboard_regressionexperiment link
SET applied_at = %(now)s
FROM dashboard_experiment experiment
WHERE link.regression_id = %(regression)s AND link.applied_at IS NULL
  AND experiment.id = link.experiment_id AND experiment.state = ANY(%(ended)s)
"""
# In one order everywhere: another run of theirs may be stored meanwhile, which renews these rows.
_KEEP_LEVELS = """
WITH locked AS (
    SELECT latest.series_id, judged.level
    FROM dashboard_serieslatest latest
    JOIN unnest(%(series)s::bigint[], %(levels)s::double precision[]) AS judged (series_id, level)
        ON judged.series_id = latest.series_id
    ORDER BY latest.series_id
    FOR NO KEY UPDATE OF latest
)
UPDATE dashboard_serieslatest latest
SET level = locked.level
FROM locked
WHERE latest.series_id = locked.series_id AND latest.level IS DISTINCT FROM locked.level
"""


def _build_judged_series() -> QuerySet[Series]:
    measured = Q(pk__in=Point.objects.filter(run=Parameter("run")).values("series"))
    missed = Q(pk__in=GuardResult.objects.filter(run=Parameter("run")).values("series"))
    rows = Series.objects.filter(JUDGED, measured | missed)
    return rows.select_related("metric", "configuration__case", "configuration__pool")


def _build_changes_to_open() -> QuerySet[Change]:
    rows = Change.objects.filter(
        Q(pk__in_array=Parameter("changes")) | Q(regression=None),
        series__in_array=Parameter("series"),
        first_bad__branch=Parameter("branch"),
        direction=Change.Direction.REGRESSION,
    )
    return rows.select_related("series__metric", "series__configuration", "first_bad", "last_good")


def _build_unrecovered() -> QuerySet[Any, Any]:
    # On a branch a regression is reported that was found there, or that a merge has brought along.
    stepped = Change.objects.filter(regression=OuterRef("pk"), first_bad__branch=Parameter("branch"))
    rows = Regression.objects.filter(
        Q(first_bad__branch=Parameter("branch")) | Exists(stepped),
        series__in_array=Parameter("series"),
        first_bad__position__lt=Parameter("before"),
        recovered_by=None,
        withdrawn_at=None,
    )
    rows = rows.exclude(state=Regression.State.REFUTED).exclude(triaged__in=Regression.TRIAGED_AWAY)
    return rows.values_list("pk", flat=True)


_REGRESSION = CompiledQuery(
    lambda: Regression.objects.select_related("project", "first_bad").filter(pk=Parameter("pk"))
)
_JUDGED_SERIES = CompiledQuery(_build_judged_series)
_CHANGES_TO_OPEN = CompiledQuery(_build_changes_to_open)
_UNRECOVERED: CompiledQuery[Any] = CompiledQuery(_build_unrecovered)


def unjudged_run(key: int) -> Run | None:
    """The run with its commit, project and configuration; None where it isn't done, or judged already."""
    return next(iter(_UNJUDGED_RUN.read_rows(pk=key)), None)


def read_regression(key: int) -> Regression | None:
    """The regression with its project and first bad commit; None where it is gone."""
    return next(iter(_REGRESSION.read_rows(pk=key)), None)


def read_series(key: int) -> Series:
    """The series with its metric, case and pool; Series.DoesNotExist where it is gone."""
    series: Series | None = next(iter(_SERIES.read_rows(pk=key)), None)
    if series is None:
        raise Series.DoesNotExist(f"There is no series {key}.")
    return series


def read_commits(keys: Collection[int]) -> dict[int, Commit]:
    """By key those that are there."""
    return {commit.pk: commit for commit in _COMMITS.read_rows(keys=list(keys))}


def lock_project(key: int) -> Project:
    """Lock a project until the transaction ends; Project.DoesNotExist where it is gone."""
    project: Project | None = next(iter(_LOCKED_PROJECT.read_rows(pk=key)), None)
    if project is None:
        raise Project.DoesNotExist(f"There is no project {key}.")
    return project


def mark_judged(run: int) -> bool:
    """Whether it wasn't judged before."""
    with preparing_statements(connection), connection.cursor() as cursor:
        cursor.execute(_MARK_JUDGED, [timezone.now(), run])
        return bool(cursor.rowcount)


def mark_applied(regression: int) -> None:
    """Note that a decision knows of the experiments of a regression that have ended."""
    ended = list(map(str, Experiment.TERMINAL))
    given: dict[str, Any] = {"now": timezone.now(), "regression": regression, "ended": ended}
    with preparing_statements(connection), connection.cursor() as cursor:
        cursor.execute(_MARK_APPLIED, given)


def judged_series_of_run(run: Run) -> list[Series]:
    """The series that a run measured, or whose guarded quality it doesn't report."""
    return _JUDGED_SERIES.read_rows(run=run.pk)


def changes_to_open(branch: str, series: Collection[int], altered: Collection[int]) -> list[Change]:
    """The regressions of these series that are new or altered, or that belong to no regression yet."""
    return _CHANGES_TO_OPEN.read_rows(series=list(series), branch=branch, changes=list(altered))


def unrecovered_regressions(branch: str, improvements: Collection[Change]) -> set[int]:
    """The keys of a branch's regressions that are described by series which have improved after them."""
    if not improvements:
        return set()
    series = {row.series_id for row in improvements}
    newest = max(row.position for row in improvements)
    return set(_UNRECOVERED.read_rows(branch=branch, series=list(series), before=newest))


def write_levels(levels: Mapping[int, float | None]) -> None:
    """The levels of series that overviews show, by key; those that didn't move aren't written."""
    if not levels:
        return
    given: dict[str, Any] = {"series": list(levels), "levels": list(levels.values())}
    with preparing_statements(connection), connection.cursor() as cursor:
        cursor.execute(_KEEP_LEVELS, given)
