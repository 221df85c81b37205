from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0051_run_costs")]

    operations = [
        # The triggers that write it are made after each `migrate`: dashboard/page_cache/database_triggers.py.
        migrations.CreateModel(
            name="Revision",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                (
                    "project_id",
                    models.BigIntegerField(
                        help_text="What was written is shown on this project's pages alone; empty: on any.",
                        null=True,
                    ),
                ),
                ("stamp", models.BigIntegerField()),
            ],
        ),
        # Of each configuration the newest, and what is under way, whatever the length of history.
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(state="done"), fields=["configuration", "-finished_at"], name="run_done"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=~models.Q(state__in=["done", "failed", "cancelled"]),
                fields=["configuration"],
                name="run_under_way",
            ),
        ),
    ]
