import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0013_attribution'),
    ]

    operations = [
        migrations.CreateModel(
            name='Environment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(help_text='SHA-256 of the values.', max_length=64, unique=True)),
                ('values', models.JSONField(help_text="Python, torch, CUDA, packages, driver, system, kernel, processor, GPUs, harness.")),
            ],
        ),
        migrations.AddField(
            model_name='run',
            name='environment',
            field=models.ForeignKey(blank=True, help_text="What its document says of the software and the system, to be compared with other runs'.", null=True, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='dashboard.environment'),
        ),
    ]
