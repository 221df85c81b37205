from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0031_failed_jobs")]

    operations = [
        migrations.AddField(
            model_name="document",
            name="telemetry_dropped",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="document",
            name="profile_dropped",
            field=models.BooleanField(default=False),
        ),
    ]
