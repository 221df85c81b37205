"""Whether a project's repository is read as the site's account reads: those of before are, as they were."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0076_gradual_counters_beside_others")]

    operations = [
        migrations.AddField(
            model_name="project",
            name="uses_account",
            field=models.BooleanField(
                db_default=True,
                default=True,
                editable=False,
                help_text="Whether it is read as the site's account reads, and led on by redirects: who "
                "named its address may add projects.",
            ),
        )
    ]
