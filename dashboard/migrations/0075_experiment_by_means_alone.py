"""Which bisections ask the means of pairs alone, since these alone proved the step."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0074_experiment_begun")]

    operations = [
        migrations.AddField(
            model_name="experiment",
            name="by_means_alone",
            field=models.BooleanField(
                default=False,
                help_text="Single steps aren't asked: its step was proved by what they don't find.",
            ),
        ),
    ]
