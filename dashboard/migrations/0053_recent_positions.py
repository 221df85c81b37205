from __future__ import annotations

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
from django.db import migrations, models

# What storing a run writes from now on: 30 newest values with their positions and machines, and of headline
# series the level 30 days before. A look into the index on (series, position) for each series.
FILL = """
UPDATE dashboard_serieslatest latest
SET recent_positions = found.positions, recent_machines = found.machines,
    current_value = found.current_value,
    base_value = found.base_value, base_position = found.base_position
FROM (
    SELECT series.id, newest.positions, newest.machines, newest.current_value, base.value AS base_value,
           base.position AS base_position
    FROM dashboard_serieslatest state
    JOIN dashboard_series series ON series.id = state.series_id
    JOIN dashboard_configuration configuration ON configuration.id = series.configuration_id
    JOIN dashboard_case measured ON measured.id = configuration.case_id
    JOIN dashboard_project project ON project.id = measured.project_id
    CROSS JOIN LATERAL (
        SELECT array_agg(position ORDER BY position, run_id) AS positions,
               array_agg(machine ORDER BY position, run_id) AS machines,
               max(committed_at) AS committed_at, max(position) AS last,
               percentile_cont(0.5) WITHIN GROUP (ORDER BY value)
                   FILTER (WHERE NOT tainted AND place <= 5) AS current_value
        FROM (
        SELECT last.*, row_number() OVER (PARTITION BY tainted ORDER BY position DESC, run_id DESC) AS place
        FROM (
            SELECT point.run_id, point.position, point.value, point.tainted, commit.committed_at,
                   CASE WHEN point.tainted THEN NULL ELSE run.machine_id END AS machine
            FROM dashboard_point point
            JOIN dashboard_run run ON run.id = point.run_id
            JOIN dashboard_commit commit ON commit.id = run.commit_id
            WHERE point.series_id = series.id AND commit.branch = project.branch
            ORDER BY point.position DESC, point.run_id DESC
            LIMIT 30
        ) AS last
        ) AS points
    ) AS newest
    LEFT JOIN LATERAL (
        SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY value) AS value, max(position) AS position
        FROM (
            SELECT point.value, point.position
            FROM dashboard_point point
            JOIN dashboard_run run ON run.id = point.run_id
            JOIN dashboard_commit commit ON commit.id = run.commit_id
            WHERE series.headline AND point.series_id = series.id AND NOT point.tainted
              AND commit.branch = project.branch
              AND point.position <= (
                  SELECT older.position FROM dashboard_commit older
                  WHERE older.project_id = project.id AND older.branch = project.branch
                    AND older.position <= newest.last
                    AND older.committed_at <= newest.committed_at - interval '30 days'
                  ORDER BY older.position DESC LIMIT 1
              )
            ORDER BY point.position DESC, point.run_id DESC
            LIMIT 5
        ) AS points
    ) AS base ON true
    WHERE newest.positions IS NOT NULL
) AS found
WHERE found.id = latest.series_id
"""


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0052_revisions")]

    operations = [
        migrations.AddField(
            model_name="serieslatest",
            name="recent_positions",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.PositiveIntegerField(), blank=True, default=list, size=None
            ),
        ),
        migrations.AddField(
            model_name="serieslatest",
            name="recent_machines",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(null=True),
                blank=True,
                default=list,
                help_text="The machine of each; null where it is kept out of judgement, or no machine is known.",
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="serieslatest",
            name="current_value",
            field=models.FloatField(
                blank=True, help_text="The median of its five newest untainted values.", null=True
            ),
        ),
        migrations.AddField(
            model_name="serieslatest",
            name="base_value",
            field=models.FloatField(
                blank=True,
                help_text="The same as it was 30 days before its newest commit; of headline series alone.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="serieslatest",
            name="base_position",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Of the last commit before those 30 days that was measured.",
                null=True,
            ),
        ),
        migrations.AddIndex(
            model_name="commit",
            index=models.Index(
                fields=["hash"], name="commit_hash_prefix", opclasses=["varchar_pattern_ops"]
            ),
        ),
        migrations.AddIndex(
            model_name="commit",
            index=django.contrib.postgres.indexes.GinIndex(
                django.contrib.postgres.search.SearchVector("subject", config="simple"),
                name="commit_subject_words",
            ),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
