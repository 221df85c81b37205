"""Commits whose manifests can't be read have a row that says why."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0070_paired_levels")]

    operations = [
        migrations.AddField(
            model_name="commit",
            name="manifest_problem",
            field=models.TextField(
                blank=True,
                default="",
                help_text="Why its manifest can't be read: then nothing of it is measured.",
            ),
        ),
    ]
