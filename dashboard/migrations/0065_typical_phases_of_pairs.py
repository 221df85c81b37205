"""Pairs keep what their phases take in a typical step."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0064_order_of_regressions")]

    operations = [
        migrations.AddField(
            model_name="experimentpair",
            name="typical_phases",
            field=models.JSONField(
                default=dict, help_text="As phases, of a typical step; empty of sides that took no turns."
            ),
        ),
        migrations.AlterField(
            model_name="experimentpair",
            name="step_ratio",
            field=models.FloatField(
                blank=True,
                help_text="Of a step's or a phase's time, head / base: the median of that of its steps.",
                null=True,
            ),
        ),
    ]
