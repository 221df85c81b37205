"""What an experiment's spent budget is sure of is said by a verdict's own word."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

VERDICTS = {"bad": "whole", "good": "none", "between": "part"}


def name_verdicts(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    rows = apps.get_model("dashboard", "Experiment").objects.filter(reason__sure__in=list(VERDICTS))
    for row in rows.iterator():
        row.reason["sure"] = VERDICTS[row.reason["sure"]]
        row.save(update_fields=["reason"])


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0026_rewritten_history")]

    operations = [migrations.RunPython(name_verdicts, migrations.RunPython.noop, elidable=True)]
