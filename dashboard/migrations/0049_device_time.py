from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0046_former_names'),
    ]

    operations = [
        migrations.AddField(
            model_name='regression',
            name='device',
            field=models.JSONField(blank=True, default=dict),
        ),
    ]
