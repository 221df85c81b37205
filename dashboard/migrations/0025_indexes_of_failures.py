from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0024_differences_of_experiments'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('state', 'failed')), fields=['finished_at'], name='run_failed'),
        ),
        migrations.AddIndex(
            model_name='trigger',
            index=models.Index(condition=models.Q(('state', 'refused')), fields=['received_at'], name='trigger_refused'),
        ),
    ]
