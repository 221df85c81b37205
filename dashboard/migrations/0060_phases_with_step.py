import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0059_work_moved")]

    operations = [
        migrations.AddField(
            model_name="experiment",
            name="phases_with_step",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=200),
                blank=True,
                default=list,
                help_text="Phases that alone show the suspected step: their own time is weighed beside the whole.",
                size=None,
            ),
        ),
    ]
