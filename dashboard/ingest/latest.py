"""The small table of latest states that overviews read instead of points."""

from __future__ import annotations

from typing import Any

from django.db import connection

from dashboard.models import Project, Run, SeriesLatest

RECENT = 30
# What a series is compared with by itself: its level so many days before its newest commit.
BASE_DAYS = 30
# Of so many untainted values: a single one may be an outlier.
BASE_VALUES = 5

# Made again from the newest points, so that runs may come in any order; the index on (series, position) is
# read backwards, RECENT entries per series, however long its history is. The base, of headline series
# alone, is read alike, from the position of the last commit that was older by BASE_DAYS.
RENEW_LATEST = """
INSERT INTO dashboard_serieslatest (
    series_id, run_id, position, value, recent, recent_positions, recent_machines, limit_id,
    current_value, base_value, base_position, updated_at
)
SELECT touched.id, newest.runs[1], newest.positions[1], newest.values[1], newest.recent,
       newest.recent_positions, newest.recent_machines, bound.id,
       newest.current_value, base.value, base.position, now()
FROM dashboard_series touched
CROSS JOIN LATERAL (
    SELECT array_agg(run_id ORDER BY position DESC, run_id DESC) AS runs,
           array_agg(position ORDER BY position DESC, run_id DESC) AS positions,
           array_agg(value ORDER BY position DESC, run_id DESC) AS values,
           array_agg(value ORDER BY position, run_id) AS recent,
           array_agg(position ORDER BY position, run_id) AS recent_positions,
           array_agg(machine ORDER BY position, run_id) AS recent_machines,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY value)
               FILTER (WHERE NOT tainted AND place <= %(base_values)s) AS current_value,
           max(committed_at) AS committed_at
    FROM (
        SELECT last.*, row_number() OVER (PARTITION BY tainted ORDER BY position DESC, run_id DESC) AS place
        FROM (
            SELECT point.run_id, point.position, point.value, point.tainted, commit.committed_at,
               CASE WHEN point.tainted THEN NULL ELSE run.machine_id END AS machine
        FROM dashboard_point point
        JOIN dashboard_run run ON run.id = point.run_id
        JOIN dashboard_commit commit ON commit.id = run.commit_id
        WHERE point.series_id = touched.id AND commit.branch = %(branch)s
        ORDER BY point.position DESC, point.run_id DESC
        LIMIT %(recent)s
        ) AS last
    ) AS newest_points
) AS newest
LEFT JOIN LATERAL (
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY value) AS value, max(position) AS position
    FROM (
        SELECT point.value, point.position
        FROM dashboard_point point
        JOIN dashboard_run run ON run.id = point.run_id
        JOIN dashboard_commit commit ON commit.id = run.commit_id
        WHERE touched.headline AND point.series_id = touched.id AND NOT point.tainted
          AND commit.branch = %(branch)s
          AND point.position <= (
              SELECT older.position
              FROM dashboard_commit older
              WHERE older.project_id = %(project)s AND older.branch = %(branch)s
                AND older.position <= newest.positions[1]
                AND older.committed_at <= newest.committed_at - %(base_days)s * interval '1 day'
              ORDER BY older.position DESC
              LIMIT 1
          )
        ORDER BY point.position DESC, point.run_id DESC
        LIMIT %(base_values)s
    ) AS before
) AS base ON true
LEFT JOIN dashboard_limit bound ON bound.series_id = touched.id AND bound.run_id = newest.runs[1]
WHERE touched.id = ANY(%(series)s::bigint[]) AND newest.runs IS NOT NULL
ORDER BY touched.id
ON CONFLICT (series_id) DO UPDATE
SET run_id = EXCLUDED.run_id, position = EXCLUDED.position, value = EXCLUDED.value,
    recent = EXCLUDED.recent, recent_positions = EXCLUDED.recent_positions,
    recent_machines = EXCLUDED.recent_machines, limit_id = EXCLUDED.limit_id,
    current_value = EXCLUDED.current_value, base_value = EXCLUDED.base_value,
    base_position = EXCLUDED.base_position,
    updated_at = EXCLUDED.updated_at
"""


def renew_latest(run: Run, series: list[int]) -> None:
    """After new points of `run`: the latest states of these series on the project's branch."""
    project = run.commit.project
    if run.commit.branch == project.branch:
        write_latest(project, series)


def write_latest(project: Project, series: list[int]) -> None:
    """Write the latest states of these series on the project's branch; none where it has no point of them."""
    asked: dict[str, Any] = {
        "series": series,
        "project": project.pk,
        "branch": project.branch,
        "recent": RECENT,
        "base_days": BASE_DAYS,
        "base_values": BASE_VALUES,
    }
    with connection.cursor() as cursor:
        cursor.execute(RENEW_LATEST, asked)


def forget_left_points(project: Project, series: list[int]) -> None:
    """After commits have left the project's branch: latest states without their points."""
    off_branch = SeriesLatest.objects.filter(series__in=series).exclude(run__commit__branch=project.branch)
    off_branch.delete()
    write_latest(project, series)
