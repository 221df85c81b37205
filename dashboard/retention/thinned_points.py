"""The points that go with age: those of series that nothing is judged by, of all but one of so many commits.

A level is made of all its points, and an explanation reads those of phases beside a step: of what is judged,
and of what explains it, every point stays. What is left are series that people look at and nothing reads:
phases with what is nested in them, utilization, gauges and what code counts itself, operations that raise no
suspicion. Of these stay the first point, the newest ones, all points of protected runs, and of each bucket of
`every` positions on a branch the first untainted one, so that a bucket that was thinned stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from dashboard.ingest.latest import RECENT
from dashboard.models import (
    Change,
    GuardResult,
    Limit,
    Project,
    Regression,
    RegressionExperiment,
    Run,
    Series,
)

Asked = dict[str, list[int] | str | int | None]

# Read by detection and by explanations, whatever a manifest calls a headline.
READ_BY_JUDGEMENT = ("step_time", "phase_self_time", "phase_memory")


def unjudged_series(configurations: Collection[int]) -> QuerySet[Series]:
    """Those of which no judgement, and no explanation of one, reads a point.

    What shares its metric with a judged series may explain it: the calls of a phase those of the step.
    """
    # Not above: it imports scipy, for which every process that drops nothing would wait.
    from dashboard.judged_counters import JUDGED_COUNTERS
    from dashboard.regressions.series.judged_series import JUDGED

    has_been = (Change, Regression, RegressionExperiment, Limit, GuardResult)
    judged = JUDGED
    for model in has_been:
        judged = judged | Q(Exists(model._default_manager.filter(series=OuterRef("pk"))))
    of_same_metric = Series.objects.filter(
        judged, configuration=OuterRef("configuration"), metric__name=OuterRef("metric__name")
    )
    rows = Series.objects.filter(~Exists(of_same_metric), configuration__in=configurations)
    return rows.exclude(metric__name__in=(*READ_BY_JUDGEMENT, *JUDGED_COUNTERS))


def thinnable_runs(
    project: Project, runs: QuerySet[Run], every: int, configurations: Collection[int] | None
) -> QuerySet[Run]:
    """Of these runs those that have an untainted one before them in their bucket, and their points still.

    `configurations`: all runs are of these.
    """
    asked: Asked = {
        "project": project.pk,
        "trunk": project.branch,
        "every": every,
        "recent": RECENT,
        "configurations": None if configurations is None else list(configurations),
    }
    with connection.cursor() as cursor:
        cursor.execute(THINNABLE, asked)
        return runs.filter(pk__in=[key for (key,) in cursor.fetchall()])


def measure_points(project: Project, runs: Collection[int], every: int) -> tuple[int, int]:
    """How many points of these runs would go, and their bytes in the table."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"{THINNED} SELECT count(*), coalesce(sum(pg_column_size(point.*)), 0) {CHOSEN}",
            _describe_request(project, runs, every),
        )
        number, size = cursor.fetchone()
    return number, int(size)


def drop_points(project: Project, runs: Collection[int], every: int) -> None:
    """Drop them, and say so of these runs. The caller holds the project's lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"{THINNED} DELETE FROM dashboard_point WHERE id IN (SELECT point.id {CHOSEN})",  # noqa: S608
            _describe_request(project, runs, every),
        )
    Run.objects.filter(pk__in=runs).update(points_thinned=True)


def _describe_request(project: Project, runs: Collection[int], every: int) -> Asked:
    configurations = Run.objects.filter(pk__in=runs).order_by().values_list("configuration", flat=True)
    series = unjudged_series(set(configurations)).values_list("pk", flat=True)
    return {
        "runs": list(runs),
        "series": list(series),
        "trunk": project.branch,
        "every": every,
        "recent": RECENT,
    }


# So many newer runs each overview shows; as many tell the level before a step that is still to come.
THINNABLE = """
SELECT placed.id FROM (
    SELECT run.id, run.points_thinned,
           count(*) FILTER (WHERE NOT run.tainted AND NOT run.points_thinned) OVER (
               PARTITION BY run.configuration_id, commit.branch, commit.position / %(every)s
               ORDER BY commit.position, run.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
           ) AS earlier,
           count(*) FILTER (WHERE NOT run.tainted AND commit.branch = %(trunk)s) OVER (
               PARTITION BY run.configuration_id
               ORDER BY commit.position DESC RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
           ) AS newer
    FROM dashboard_run run
    JOIN dashboard_commit commit ON commit.id = run.commit_id
    WHERE commit.project_id = %(project)s AND run.state = 'done' AND run.origin <> 'sentinel'
      AND (%(configurations)s::bigint[] IS NULL
           OR run.configuration_id = ANY(%(configurations)s::bigint[]))
) AS placed
WHERE NOT placed.points_thinned AND placed.earlier > 0 AND placed.newer >= %(recent)s
"""

# Of each series the first point stays, and as many untainted ones of the project's branch as overviews show;
# of each bucket the first run that has a point of the series.
THINNED = """
WITH kept AS (
    SELECT series.id, oldest.position AS oldest, newest.position AS newest
    FROM unnest(%(series)s::bigint[]) AS series (id)
    CROSS JOIN LATERAL (
        SELECT point.position FROM dashboard_point point
        WHERE point.series_id = series.id ORDER BY point.position LIMIT 1
    ) AS oldest
    CROSS JOIN LATERAL (
        SELECT point.position
        FROM dashboard_point point
        JOIN dashboard_run run ON run.id = point.run_id
        JOIN dashboard_commit commit ON commit.id = run.commit_id
        WHERE point.series_id = series.id AND commit.branch = %(trunk)s AND NOT point.tainted
        ORDER BY point.position DESC OFFSET %(recent)s - 1 LIMIT 1
    ) AS newest
), earlier AS (
    SELECT run.id AS run_id, before.id AS before_id
    FROM dashboard_run run
    JOIN dashboard_commit commit ON commit.id = run.commit_id
    JOIN dashboard_commit base ON base.project_id = commit.project_id AND base.branch = commit.branch
        AND base.position BETWEEN commit.position - commit.position %% %(every)s AND commit.position
    JOIN dashboard_run before ON before.commit_id = base.id
        AND before.configuration_id = run.configuration_id AND before.state = 'done'
        AND before.origin <> 'sentinel' AND NOT before.tainted AND NOT before.points_thinned
        AND (base.position, before.id) < (commit.position, run.id)
    WHERE run.id = ANY(%(runs)s::bigint[])
)
"""
CHOSEN = """
FROM dashboard_point point
JOIN kept ON kept.id = point.series_id
WHERE point.run_id = ANY(%(runs)s::bigint[])
  AND point.position > kept.oldest AND point.position < kept.newest
  AND EXISTS (
      SELECT FROM earlier
      JOIN dashboard_point first ON first.run_id = earlier.before_id AND first.series_id = point.series_id
      WHERE earlier.run_id = point.run_id
  )
"""
