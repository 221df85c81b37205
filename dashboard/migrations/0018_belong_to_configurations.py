import uuid

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

ENDED = ["done", "failed", "cancelled"]


class Migration(migrations.Migration):
    """Runs, series and sentinels have one key in the place of four columns; a run may wait for its time."""

    dependencies = [("dashboard", "0017_fill_configurations")]

    operations = [
        migrations.RemoveConstraint(model_name="run", name="run_active_once"),
        migrations.RemoveConstraint(model_name="run", name="run_sentinel_active_once"),
        migrations.RemoveIndex(model_name="run", name="run_waiting"),
        migrations.RemoveConstraint(model_name="series", name="series_identity"),
        migrations.RemoveConstraint(model_name="sentinel", name="sentinel_once"),
        *(
            migrations.RemoveField(model_name=model, name=name)
            for model, names in (
                ("run", ("case", "pool", "version", "quick")),
                ("series", ("case", "pool", "version", "quick")),
                ("sentinel", ("case", "version", "quick")),
            )
            for name in names
        ),
        *(
            migrations.AlterField(
                model_name=model,
                name="configuration",
                field=models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name=related,
                    to="dashboard.configuration",
                ),
            )
            for model, related in (("run", "runs"), ("series", "series"), ("sentinel", "sentinels"))
        ),
        migrations.AddField(
            model_name="run", name="not_before", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.AlterField(
            model_name="run",
            name="requested_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
        ),
        migrations.AlterField(
            model_name="run",
            name="activity",
            field=models.CharField(blank=True, help_text="What it is doing, for people.", max_length=200),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(
                condition=~models.Q(state__in=ENDED) & ~models.Q(origin="sentinel"),
                fields=("commit", "configuration"),
                name="run_active_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(
                condition=models.Q(origin="sentinel") & ~models.Q(state__in=ENDED),
                fields=("configuration", "only_on"),
                name="run_sentinel_active_once",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(state="requested"),
                fields=["-priority", "requested_at"],
                name="run_waiting",
            ),
        ),
        migrations.AddConstraint(
            model_name="series",
            constraint=models.UniqueConstraint(
                fields=("configuration", "metric", "phase"), name="series_identity"
            ),
        ),
        migrations.AddConstraint(
            model_name="sentinel",
            constraint=models.UniqueConstraint(fields=("configuration", "machine"), name="sentinel_once"),
        ),
        # One lease for all work: deliveries have one too.
        migrations.RenameField(model_name="delivery", old_name="attempts", new_name="attempt"),
        migrations.AlterField(
            model_name="delivery",
            name="attempt",
            field=models.PositiveSmallIntegerField(default=0, help_text="Counted at each claim."),
        ),
        migrations.AddField(model_name="delivery", name="lease", field=models.UUIDField(default=uuid.uuid4)),
        migrations.AddField(
            model_name="delivery", name="lease_until", field=models.DateTimeField(blank=True, null=True)
        ),
    ]
