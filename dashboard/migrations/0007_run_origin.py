from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("dashboard", "0006_promise"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="origin",
            field=models.CharField(
                choices=[("measured", "Measured"), ("imported", "Imported")],
                default="measured",
                help_text="Measured here, or imported.",
                max_length=10,
            ),
        ),
    ]
