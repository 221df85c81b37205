from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0048_slow_processes'),
    ]

    operations = [
        migrations.AddField(
            model_name='regression',
            name='device',
            field=models.JSONField(blank=True, default=dict),
        ),
    ]
