"""The small table of latest states that overviews read instead of points."""

from __future__ import annotations

from django.db import connection

from dashboard.models import Project, Run, SeriesLatest

RECENT = 30

# Made again from the newest points, so that runs may come in any order; the index on (series, position) is
# read backwards, RECENT entries per series, however long its history is.
RENEW_LATEST = """
INSERT INTO dashboard_serieslatest (series_id, run_id, position, value, recent, limit_id, updated_at)
SELECT touched.id, newest.runs[1], newest.positions[1], newest.values[1], newest.recent, bound.id, now()
FROM unnest(%(series)s::bigint[]) AS touched (id)
CROSS JOIN LATERAL (
    SELECT array_agg(run_id ORDER BY position DESC, run_id DESC) AS runs,
           array_agg(position ORDER BY position DESC, run_id DESC) AS positions,
           array_agg(value ORDER BY position DESC, run_id DESC) AS values,
           array_agg(value ORDER BY position, run_id) AS recent
    FROM (
        SELECT point.run_id, point.position, point.value
        FROM dashboard_point point
        JOIN dashboard_run run ON run.id = point.run_id
        JOIN dashboard_commit commit ON commit.id = run.commit_id
        WHERE point.series_id = touched.id AND commit.branch = %(branch)s
        ORDER BY point.position DESC, point.run_id DESC
        LIMIT %(recent)s
    ) AS last
) AS newest
LEFT JOIN dashboard_limit bound ON bound.series_id = touched.id AND bound.run_id = newest.runs[1]
WHERE newest.runs IS NOT NULL
ON CONFLICT (series_id) DO UPDATE
SET run_id = EXCLUDED.run_id, position = EXCLUDED.position, value = EXCLUDED.value,
    recent = EXCLUDED.recent, limit_id = EXCLUDED.limit_id, updated_at = EXCLUDED.updated_at
"""


def renew_latest(run: Run, series: list[int]) -> None:
    """After new points of `run`: the latest states of these series on the project's branch."""
    project = run.commit.project
    if run.commit.branch == project.branch:
        write_latest(project, series)


def write_latest(project: Project, series: list[int]) -> None:
    """Write the latest states of these series on the project's branch; none where it has no point of them."""
    with connection.cursor() as cursor:
        cursor.execute(RENEW_LATEST, {"series": series, "branch": project.branch, "recent": RECENT})


def forget_left_points(project: Project, series: list[int]) -> None:
    """After commits have left the project's branch: latest states without their points."""
    elsewhere = SeriesLatest.objects.filter(series__in=series).exclude(run__commit__branch=project.branch)
    elsewhere.delete()
    write_latest(project, series)
