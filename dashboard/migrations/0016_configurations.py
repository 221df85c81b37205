import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """A row for what is measured one way; runs, series and sentinels are about to belong to it."""

    dependencies = [("dashboard", "0015_environments_of_runs")]

    operations = [
        migrations.CreateModel(
            name="Configuration",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("version", models.PositiveIntegerField(help_text="The benchmark's version.")),
                ("quick", models.BooleanField(default=False)),
                (
                    "case",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="configurations",
                        to="dashboard.case",
                    ),
                ),
                (
                    "pool",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="configurations",
                        to="dashboard.pool",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="configuration",
            constraint=models.UniqueConstraint(
                fields=("case", "version", "pool", "quick"), name="configuration_once"
            ),
        ),
        *(
            migrations.AddField(
                model_name=model,
                name="configuration",
                field=models.ForeignKey(
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name=related,
                    to="dashboard.configuration",
                ),
            )
            for model, related in (("run", "runs"), ("series", "series"), ("sentinel", "sentinels"))
        ),
    ]
