"""A counter's gradual regression may end at the commit of another one: it is over many commits."""

from django.db import migrations

DROP = "ALTER TABLE dashboard_regression DROP CONSTRAINT regression_once_per_commit;"
ADD = """
ALTER TABLE dashboard_regression ADD CONSTRAINT regression_once_per_commit
EXCLUDE USING btree (project_id WITH =, first_bad_id WITH ={gradual}) WHERE (withdrawn_at IS NULL)
DEFERRABLE INITIALLY DEFERRED;
"""
# Only what small steps add up to says how many they are.
GRADUAL = ", (bisection ? 'steps') WITH ="


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0075_experiment_by_means_alone")]

    operations = [
        migrations.RunSQL(DROP + ADD.format(gradual=GRADUAL), DROP + ADD.format(gradual="")),
    ]
