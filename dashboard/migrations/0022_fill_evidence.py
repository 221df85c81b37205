from django.db import migrations

FILL = r"""
UPDATE dashboard_regression SET cause_evidence = (
    SELECT jsonb_agg(jsonb_build_object('code', 'text', 'text', said))
    FROM jsonb_array_elements_text(cause_evidence) AS said)
WHERE cause_evidence <> '[]';

UPDATE dashboard_change SET doubts = (
    SELECT jsonb_agg(jsonb_build_object('code', 'text', 'text', said))
    FROM jsonb_array_elements_text(doubts) AS said)
WHERE doubts <> '[]';

UPDATE dashboard_change SET markers = (
    SELECT jsonb_agg(coalesce(to_jsonb(regexp_match(said, '^(\S+) (.*) -> (.*)$')), jsonb_build_array(said, '', '')))
    FROM jsonb_array_elements_text(markers) AS said)
WHERE markers <> '[]';

UPDATE dashboard_change AS change SET reach_good = good.position, reach_bad = change.position
FROM dashboard_commit good WHERE good.id = change.last_good_id;

UPDATE dashboard_regression SET bisection = jsonb_build_object('code', 'text', 'text', bisected)
WHERE bisected <> '';

UPDATE dashboard_regression SET
    place = CASE
        WHEN old_place LIKE 'on the host, which%%' THEN 'host alone'
        WHEN old_place LIKE 'on the host or%%' THEN 'host or device'
        WHEN old_place LIKE 'on the device: %%' THEN 'waits for device'
        WHEN old_place = 'on the device' THEN 'device'
        WHEN old_place = 'on the host' THEN 'host'
        ELSE '' END,
    place_phase = coalesce(substring(old_place FROM 'for the device''s work of (.*)$'), '');

UPDATE dashboard_limit AS crossed SET regression_id = regression.id
FROM dashboard_regression regression, dashboard_run run
WHERE regression.old_limit <> '' AND run.id = crossed.run_id AND run.commit_id = regression.first_bad_id
  AND crossed.crossed AND NOT crossed.tainted;

UPDATE dashboard_regression AS regression SET residual = true
WHERE proving AND old_limit = '' AND withdrawn_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM dashboard_change change WHERE change.regression_id = regression.id);

UPDATE dashboard_regression SET withdrawal = 'not found' WHERE withdrawn_at IS NOT NULL;
"""


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0021_evidence_as_data")]

    operations = [migrations.RunSQL(FILL.replace("%%", "%"), migrations.RunSQL.noop)]
