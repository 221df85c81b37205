from django.db import migrations, models

# The table of Django's cache, which all web processes share. What it holds may be lost at any time.
CACHE = """
    CREATE UNLOGGED TABLE dashboard_cache (
        cache_key varchar(255) NOT NULL PRIMARY KEY, value text NOT NULL, expires timestamptz NOT NULL
    );
    CREATE INDEX dashboard_cache_expires ON dashboard_cache (expires);
"""


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0038_forges'),
    ]

    operations = [
        migrations.CreateModel(
            name='Throttle',
            fields=[
                ('key', models.CharField(help_text='A hash of what is limited, and of the visitor or account.', max_length=64, primary_key=True, serialize=False)),
                ('count', models.PositiveIntegerField(help_text='Requests of the window; or attempts without a success.')),
                ('started_at', models.DateTimeField(help_text='When the window began; or the newest attempt.')),
                ('free_at', models.DateTimeField(db_index=True, help_text='Nothing is refused any more from then on.')),
            ],
        ),
        # Written with each limited request: without a log of its own it costs no wait for the disk.
        migrations.RunSQL('ALTER TABLE dashboard_throttle SET UNLOGGED', 'ALTER TABLE dashboard_throttle SET LOGGED'),
        migrations.RunSQL(CACHE, 'DROP TABLE dashboard_cache'),
    ]
