import uuid

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


# Columns whose type changes: each sentence is kept as the code `text` in a second step.
AS_JSON = """
ALTER TABLE dashboard_regression ALTER COLUMN cause_evidence TYPE jsonb USING to_jsonb(cause_evidence);
ALTER TABLE dashboard_change ALTER COLUMN doubts TYPE jsonb USING to_jsonb(doubts);
ALTER TABLE dashboard_change ALTER COLUMN markers TYPE jsonb USING to_jsonb(markers);
"""


class Migration(migrations.Migration):
    """What decided and explained something is kept as codes and values; sentences are made where they are shown."""

    dependencies = [
        ("dashboard", "0020_fill_experiments"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.DeleteModel(name="Pair"),
        migrations.DeleteModel(name="Confirmation"),
        migrations.RemoveConstraint(model_name="regression", name="regression_once_per_commit"),
        migrations.RenameField("change", "innocent", "environment_only"),
        migrations.RenameField("regression", "limit", "old_limit"),
        migrations.RenameField("regression", "place", "old_place"),
        migrations.RunSQL(
            AS_JSON,
            state_operations=[
                migrations.AlterField(
                    "regression", "cause_evidence", models.JSONField(blank=True, default=list)
                ),
                migrations.AlterField("change", "doubts", models.JSONField(blank=True, default=list)),
                migrations.AlterField("change", "markers", models.JSONField(blank=True, default=list)),
            ],
        ),
        migrations.AddField(
            model_name="change",
            name="reach_bad",
            field=models.PositiveIntegerField(default=0),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="change",
            name="reach_good",
            field=models.PositiveIntegerField(default=0),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="regression",
            name="awaited_runs",
            field=models.ManyToManyField(blank=True, related_name="awaiting_regressions", to="dashboard.run"),
        ),
        migrations.AddField(
            model_name="regression",
            name="bisection",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name="regression",
            name="decided_for",
            field=models.CharField(
                blank=True,
                help_text="What its class was decided for; another key asks for a new one.",
                max_length=300,
            ),
        ),
        migrations.AddField(
            model_name="regression",
            name="excerpts",
            field=models.JSONField(blank=True, default=list),
        ),
        migrations.AddField(
            model_name="regression",
            name="explained_for",
            field=models.CharField(
                blank=True,
                help_text="What its explanation was made for; another key asks for a new one.",
                max_length=200,
            ),
        ),
        migrations.AddField(
            model_name="regression",
            name="only_changed_by",
            field=models.CharField(
                blank=True,
                help_text="Of several commits the only one that changed the first suspect.",
                max_length=64,
            ),
        ),
        migrations.AddField(
            model_name="regression",
            name="place_phase",
            field=models.CharField(
                blank=True, help_text="The phase whose device work the host waits for.", max_length=200
            ),
        ),
        migrations.AddField(
            model_name="regression",
            name="residual",
            field=models.BooleanField(
                default=False,
                help_text="The rest of another one's step, which no series shows by itself so far.",
            ),
        ),
        migrations.AddField(
            model_name="regression",
            name="withdrawal",
            field=models.CharField(
                blank=True,
                choices=[("not found", "Not Found"), ("rewritten", "Rewritten")],
                help_text="Why it was withdrawn.",
                max_length=20,
            ),
        ),
        migrations.AddField(
            model_name="limit",
            name="regression",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="limits",
                to="dashboard.regression",
            ),
        ),
        migrations.AddField(
            model_name="regression",
            name="place",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "Untold"),
                    ("host", "Host"),
                    ("host alone", "Host Alone"),
                    ("device", "Device"),
                    ("waits for device", "Waits For Device"),
                    ("host or device", "Unknown"),
                ],
                default="",
                help_text="Host or device: where that phase lost its time.",
                max_length=20,
            ),
        ),
        migrations.AddIndex(
            model_name="regression",
            index=models.Index(fields=["project", "first_bad"], name="regression_of_commit"),
        ),
    ]
