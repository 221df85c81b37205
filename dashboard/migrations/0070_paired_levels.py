"""Regressions keep the level before as their pairs measured it: what goes with the size that is told."""

from django.db import migrations, models

FILL = """
UPDATE dashboard_experiment experiment SET base_level = paired.level
FROM (
    SELECT experiment_id, percentile_cont(0.5) WITHIN GROUP (ORDER BY base) AS level
    FROM dashboard_experimentpair
    WHERE NOT disturbed AND unreported = ''
    GROUP BY experiment_id
) paired
WHERE paired.experiment_id = experiment.id;
UPDATE dashboard_regression regression SET paired_before = sizing.base_level
FROM (
    SELECT DISTINCT ON (regression.id) regression.id, experiment.base_level
    FROM dashboard_regression regression
    JOIN dashboard_series series ON series.id = regression.series_id
    JOIN dashboard_metric metric ON metric.id = series.metric_id AND metric.kind <> 'quality'
    JOIN dashboard_regressionexperiment link
        ON link.regression_id = regression.id AND link.series_id = regression.series_id
    JOIN dashboard_experiment experiment ON experiment.id = link.experiment_id
    WHERE experiment.head_commit_id = regression.first_bad_id
        AND experiment.verdict IN ('confirmed', 'whole', 'part')
        AND (regression.ratio IS NULL OR regression.ratio = COALESCE(
            (experiment.reason -> 'step' ->> 0)::double precision, experiment.ratio))
    ORDER BY regression.id, COALESCE(experiment.finished_at, experiment.requested_at) DESC, experiment.id DESC
) sizing
WHERE sizing.id = regression.id AND sizing.base_level IS NOT NULL;
-- What is checked at the end of a transaction is checked before the tables change again.
SET CONSTRAINTS ALL IMMEDIATE;
SET CONSTRAINTS ALL DEFERRED;
"""


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0069_experiment_measuring")]

    operations = [
        migrations.AddField(
            model_name="experiment",
            name="base_level",
            field=models.FloatField(
                blank=True, help_text="The median of the bases of its undisturbed pairs.", null=True
            ),
        ),
        migrations.AddField(
            model_name="regression",
            name="paired_before",
            field=models.FloatField(
                blank=True,
                help_text="The level before, as the pairs that sized it measured it; empty without pairs.",
                null=True,
            ),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
