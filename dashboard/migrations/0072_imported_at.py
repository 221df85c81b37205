"""When a project was made from an archive: until something is measured here it warns of nothing."""

from django.db import migrations, models

# Nobody knows any more when: what was measured here before now tells nothing.
FILL = "UPDATE dashboard_project SET imported_at = now() WHERE archive_sha256 <> ''"


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
