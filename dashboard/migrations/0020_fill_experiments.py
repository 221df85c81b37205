from django.db import migrations

FILL = """
INSERT INTO dashboard_experiment (
    id, attempt, lease, lease_until, activity, requested_at, finished_at, project_id, purpose, question,
    base_commit_id, head_commit_id, base_configuration_id, head_configuration_id, metric_id, phase,
    before, after, error, most_pairs, most_seconds, state, verdict, reason, machine_id, in_turns,
    ratio, low, high, seconds, commands, profiles, measuring_at)
SELECT old.id, old.attempt, old.lease, old.lease_until, old.activity, old.requested_at, old.finished_at,
    regression.project_id,
    CASE old.purpose WHEN 'confirm' THEN 'proof' WHEN 'bisect' THEN 'bisection' ELSE 'merge' END,
    CASE old.purpose WHEN 'confirm' THEN 'test' ELSE 'place' END,
    old.good_id, old.bad_id, series.configuration_id, series.configuration_id, series.metric_id, series.phase,
    old.before, old.after, old.error, project.experiment_pairs, 60 * project.experiment_minutes, old.state,
    CASE old.verdict WHEN 'bad' THEN 'whole' WHEN 'good' THEN 'none' WHEN 'between' THEN 'part'
        ELSE old.verdict END,
    CASE old.reason WHEN '' THEN '{}'::jsonb ELSE jsonb_build_object('code', 'text', 'text', old.reason) END,
    old.machine_id, old.in_turns, old.ratio, old.low, old.high, old.seconds, old.commands, '{}',
    old.measuring_at
FROM dashboard_confirmation old
JOIN dashboard_series series ON series.id = old.series_id
JOIN dashboard_regression regression ON regression.id = old.regression_id
JOIN dashboard_project project ON project.id = regression.project_id;

INSERT INTO dashboard_experimentpair (
    id, experiment_id, index, base_first, base, head, disturbed, seconds, phases, sweeps, measured_at)
SELECT id, confirmation_id, index, good_first, good, bad, disturbed, seconds, phases,
    CASE WHEN sweeps ? 'good'
        THEN (sweeps - 'good' - 'bad') || jsonb_build_object('base', sweeps->'good', 'head', sweeps->'bad')
        ELSE sweeps END,
    measured_at
FROM dashboard_pair;

INSERT INTO dashboard_regressionexperiment (regression_id, experiment_id, series_id, applied_at)
SELECT regression_id, id, series_id, applied_at FROM dashboard_confirmation;

SELECT setval(pg_get_serial_sequence('dashboard_experiment', 'id'),
    coalesce((SELECT max(id) FROM dashboard_experiment), 0) + 1, false);
SELECT setval(pg_get_serial_sequence('dashboard_experimentpair', 'id'),
    coalesce((SELECT max(id) FROM dashboard_experimentpair), 0) + 1, false);
"""


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0019_experiments")]

    operations = [migrations.RunSQL(FILL, migrations.RunSQL.noop)]
