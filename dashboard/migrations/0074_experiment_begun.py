"""An index by which a claim finds what a pool has begun last."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0073_repository_readings")]

    operations = [
        migrations.AddIndex(
            model_name="experiment",
            index=models.Index(
                condition=models.Q(measuring_at__isnull=False), fields=["measuring_at"], name="experiment_begun"
            ),
        ),
    ]
