"""When a project was made from an archive: until something is measured here it warns of nothing."""

from django.db import migrations, models

# Nobody knows any more when: not before the newest run that it brought along. What a machine measured that was
# seen here is no copy at rest: it goes on warning.
FILL = """
UPDATE dashboard_project project
SET imported_at = COALESCE((SELECT max(requested_at) FROM dashboard_run WHERE project_id = project.id), now())
WHERE archive_sha256 <> '' AND NOT EXISTS (
    SELECT 1 FROM dashboard_run run JOIN dashboard_machine machine ON machine.id = run.machine_id
    WHERE run.project_id = project.id AND machine.seen_at IS NOT NULL
)
"""


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0071_manifest_problems")]

    operations = [
        migrations.AddField(
            model_name="project",
            name="imported_at",
            field=models.DateTimeField(
                blank=True, editable=False, help_text="When it was made from an archive.", null=True
            ),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
