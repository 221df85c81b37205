from django.db import migrations

FILL = """
INSERT INTO dashboard_configuration (case_id, version, pool_id, quick)
SELECT case_id, version, pool_id, quick FROM dashboard_run
UNION SELECT case_id, version, pool_id, quick FROM dashboard_series
UNION SELECT sentinel.case_id, sentinel.version, machine.pool_id, sentinel.quick
      FROM dashboard_sentinel sentinel JOIN dashboard_machine machine ON machine.id = sentinel.machine_id;

UPDATE dashboard_run AS row SET configuration_id = known.id FROM dashboard_configuration known
WHERE (row.case_id, row.version, row.pool_id, row.quick)
    = (known.case_id, known.version, known.pool_id, known.quick);

UPDATE dashboard_series AS row SET configuration_id = known.id FROM dashboard_configuration known
WHERE (row.case_id, row.version, row.pool_id, row.quick)
    = (known.case_id, known.version, known.pool_id, known.quick);

UPDATE dashboard_sentinel AS row SET configuration_id = known.id
FROM dashboard_configuration known, dashboard_machine machine
WHERE machine.id = row.machine_id
  AND (row.case_id, row.version, machine.pool_id, row.quick)
    = (known.case_id, known.version, known.pool_id, known.quick);
"""


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0016_configurations")]

    operations = [migrations.RunSQL(FILL, migrations.RunSQL.noop)]
