"""Rules say whether they notify, measurements of claims who requested them: a person, a script or the policy."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0078_published_checks")]

    operations = [
        migrations.RenameField("alertrule", "tell", "notifies"),
        migrations.RenameField("claimmeasurement", "asker", "requester"),
    ]
