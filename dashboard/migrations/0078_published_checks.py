"""Checks say what was published of them, deliveries which state they reported, triages which check they are from.

Messages and failed jobs that wait name the tasks as they are called now.
"""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

TASKS = (("tell_check", "publish_check"), ("obey_comment", "handle_comment"))


def rename_tasks(pairs):
    def rename(apps, _editor):
        for name in ("OutboxMessage", "FailedJob"):
            rows = apps.get_model("dashboard", name).objects
            for former, new in pairs:
                rows.filter(task=f"workers.{former}").update(task=f"workers.{new}")

    return rename


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0077_repository_read_as_whom")]

    operations = [
        migrations.RenameField("check", "told", "published"),
        migrations.RenameField("delivery", "told", "reported_state"),
        migrations.RenameField("pullrequest", "telling_until", "publishing_until"),
        migrations.RenameField("triage", "said_of", "merged_check"),
        migrations.AlterField(
            model_name="alertrule",
            name="states",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(
                    choices=[("suspected", "Suspected"), ("confirmed", "Confirmed")], max_length=20
                ),
                help_text="Those in which it is reported.",
                size=None,
            ),
        ),
        migrations.AlterField(
            model_name="channel",
            name="minimum_percent",
            field=models.FloatField(default=0, help_text="Smaller changes are not reported here."),
        ),
        migrations.AlterField(
            model_name="check",
            name="published",
            field=models.JSONField(
                blank=True,
                default=dict,
                help_text="What its forge was sent last: the status with its sentence, and the comment's SHA-256.",
            ),
        ),
        migrations.AlterField(
            model_name="forgeconnection",
            name="open_pull_requests",
            field=models.JSONField(
                blank=True,
                default=dict,
                help_text="Those that the last poll saw: number -> what it said of each.",
            ),
        ),
        migrations.AlterField(
            model_name="pullrequest",
            name="publishing_until",
            field=models.DateTimeField(
                blank=True,
                help_text="While a worker publishes at its forge: of two one comments.",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="regression",
            name="place",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "Undetermined"),
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
        migrations.AlterField(
            model_name="triage",
            name="merged_check",
            field=models.ForeignKey(
                blank=True,
                help_text="The check that was triaged, before its head was merged.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="triages",
                to="dashboard.check",
            ),
        ),
        migrations.RunPython(rename_tasks(TASKS), rename_tasks([pair[::-1] for pair in TASKS])),
    ]
