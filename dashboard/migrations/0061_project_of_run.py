"""Runs name their project themselves, so that its newest are found however long others have been measured."""

import django.db.models.deletion
from django.db import migrations, models

# The database fills it, whoever stores a run: it follows from the configuration, and stays.
FILL = """
CREATE FUNCTION dashboard_fill_project_of_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT of_case.project_id INTO NEW.project_id
    FROM dashboard_configuration configuration
    JOIN dashboard_case of_case ON of_case.id = configuration.case_id
    WHERE configuration.id = NEW.configuration_id;
    RETURN NEW;
END
$$;
CREATE TRIGGER run_project BEFORE INSERT OR UPDATE OF configuration_id ON dashboard_run
    FOR EACH ROW EXECUTE FUNCTION dashboard_fill_project_of_run();
"""
LEAVE = """
DROP TRIGGER run_project ON dashboard_run;
DROP FUNCTION dashboard_fill_project_of_run();
"""
BACKFILL = """
UPDATE dashboard_run run SET project_id = of_case.project_id
FROM dashboard_configuration configuration
JOIN dashboard_case of_case ON of_case.id = configuration.case_id
WHERE configuration.id = run.configuration_id;
-- What is checked at the end of a transaction is checked before the table changes again.
SET CONSTRAINTS ALL IMMEDIATE;
SET CONSTRAINTS ALL DEFERRED;
"""


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0060_phases_with_step")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="project",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="dashboard.project",
            ),
        ),
        migrations.RunSQL(FILL, LEAVE),
        migrations.RunSQL(BACKFILL, migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="run",
            name="project",
            field=models.ForeignKey(
                db_default=models.Value(0),
                db_index=False,
                editable=False,
                help_text="Of its case; the database fills it.",
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="dashboard.project",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["project", "-requested_at", "-id"], name="run_of_project"),
        ),
    ]
