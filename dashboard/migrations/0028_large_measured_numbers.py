import dashboard.models.measured_json
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0027_places_of_budgets")]

    operations = [
        migrations.AlterField(
            model_name="document",
            name="body",
            field=models.JSONField(decoder=dashboard.models.measured_json.MeasuredJsonDecoder),
        ),
        migrations.AlterField(
            model_name="experimentpair",
            name="sweeps",
            field=models.JSONField(
                decoder=dashboard.models.measured_json.MeasuredJsonDecoder,
                default=dict,
                help_text="Where a metric of a sweep is weighed: parameter, amount, points of base and head.",
            ),
        ),
    ]
