from django.db import migrations

# Several regressions move at once, and only the end of a transaction counts: a unique index could not wait.
ONCE = """
ALTER TABLE dashboard_regression ADD CONSTRAINT regression_once_per_commit
EXCLUDE USING btree (project_id WITH =, first_bad_id WITH =) WHERE (withdrawn_at IS NULL)
DEFERRABLE INITIALLY DEFERRED
"""


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0022_fill_evidence")]

    operations = [
        migrations.RemoveField("regression", "old_limit"),
        migrations.RemoveField("regression", "old_place"),
        migrations.RemoveField("regression", "bisected"),
        migrations.RunSQL(
            ONCE, "ALTER TABLE dashboard_regression DROP CONSTRAINT regression_once_per_commit"
        ),
    ]
