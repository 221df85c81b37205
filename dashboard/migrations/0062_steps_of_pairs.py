"""Pairs keep their single steps, and an experiment ends by its minutes: 24 pairs were few of a short step."""

from django.apps.registry import Apps
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

OLD, NEW = 24, 400


def take_new_default(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Of projects that have the old one, which nobody chose."""
    apps.get_model("dashboard", "Project").objects.filter(experiment_pairs=OLD).update(experiment_pairs=NEW)


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0061_project_of_run")]

    operations = [
        migrations.AddField(
            model_name="experimentpair",
            name="steps",
            field=models.JSONField(
                default=dict,
                help_text="Until the verdict, of sides that took turns: seconds of each step, or of a few.",
            ),
        ),
        migrations.AlterField(
            model_name="project",
            name="experiment_pairs",
            field=models.PositiveSmallIntegerField(
                default=NEW, validators=[MinValueValidator(4), MaxValueValidator(1000)]
            ),
        ),
        migrations.AlterField(
            model_name="experiment",
            name="most_pairs",
            field=models.PositiveSmallIntegerField(default=NEW),
        ),
        migrations.RunPython(take_new_default, migrations.RunPython.noop),
    ]
