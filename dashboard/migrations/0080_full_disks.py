"""Machines whose disk is full take no work, and say so."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0079_notifying_rules")]

    operations = [
        migrations.AddField(
            model_name="machine",
            name="too_few_bytes",
            field=models.BigIntegerField(
                blank=True,
                help_text="What is left on its disk, where that is too little to take work; empty: enough.",
                null=True,
            ),
        ),
    ]
