from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0047_kept_files'),
    ]

    operations = [
        migrations.AddField(
            model_name='regression',
            name='slow_processes',
            field=models.JSONField(blank=True, default=list),
        ),
    ]
