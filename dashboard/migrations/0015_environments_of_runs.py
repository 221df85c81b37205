import hashlib
import json
from itertools import chain, islice

from django.db import migrations

NAMES = ('python', 'torch', 'cuda', 'packages', 'driver', 'os', 'kernel', 'cpu_model', 'gpus')
BATCH = 500


def store_environments(apps, schema_editor):
    """Of each run that has a document, from that document; of an imported run, from its fingerprint."""
    Document, Environment, Run = (apps.get_model('dashboard', name) for name in ('Document', 'Environment', 'Run'))
    documents = Document.objects.values_list('run_id', 'body__environment', 'body__harness__version')
    imported = Run.objects.filter(origin='imported').exclude(fingerprint={}).values_list('pk', 'fingerprint')
    measured = documents.iterator(chunk_size=BATCH)
    described = ((run, fingerprint, None) for run, fingerprint in imported.iterator(chunk_size=BATCH))
    rows, keys = chain(measured, described), {}
    while batch := list(islice(rows, BATCH)):
        runs = {}
        for run, environment, harness in batch:
            if environment:
                values = {**{name: environment.get(name) for name in NAMES}, 'harness': harness}
                digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
                if digest not in keys:
                    keys[digest] = Environment.objects.create(digest=digest, values=values).pk
                runs.setdefault(keys[digest], []).append(run)
        for key, members in runs.items():
            Run.objects.filter(pk__in=members).update(environment=key)


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0014_environments'),
    ]

    operations = [
        migrations.RunPython(store_environments, migrations.RunPython.noop, elidable=True),
    ]
