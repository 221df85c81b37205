"""Pairs keep what their single steps say, which go with the verdict; experiments, by which of both they are told."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0062_steps_of_pairs")]

    operations = [
        migrations.AddField(
            model_name="experiment",
            name="by_steps",
            field=models.BooleanField(
                blank=True,
                help_text="Whether that is by the pairs' single steps, or else by their means; empty: not known.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="experimentpair",
            name="step_ratio",
            field=models.FloatField(
                blank=True,
                help_text="Of a step's time, head / base: the median of that of its steps.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="experimentpair",
            name="kinds_ratio",
            field=models.FloatField(
                blank=True,
                help_text="What long and short steps make of it, in this pair and those before it.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="experimentpair",
            name="kinds_error",
            field=models.FloatField(
                blank=True, help_text="The standard error of that, as a part of the whole.", null=True
            ),
        ),
    ]
