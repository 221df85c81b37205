"""The user and password of a repository's address are kept encrypted, apart from it."""

import dashboard.secrets.encryption
from dashboard.repositories import split_credentials
from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def move_credentials(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    for project in apps.get_model("dashboard", "Project").objects.filter(repository__contains="@"):
        project.repository, project.credentials = split_credentials(project.repository)
        project.save(update_fields=["repository", "credentials"])


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0029_long_branches_and_paths")]

    operations = [
        migrations.AddField(
            model_name="project",
            name="credentials",
            field=dashboard.secrets.encryption.EncryptedField(
                blank=True,
                default="",
                help_text="USER:PASSWORD of the repository's address, where it needs them.",
            ),
        ),
        migrations.AlterField(
            model_name="project",
            name="hook_secret",
            field=dashboard.secrets.encryption.EncryptedField(
                blank=True, default="", help_text="Signs the requests of the git hook."
            ),
        ),
        migrations.AlterField(
            model_name="channel",
            name="secret",
            field=dashboard.secrets.encryption.EncryptedField(
                blank=True, default="", help_text="Signs a webhook's requests."
            ),
        ),
        migrations.RunPython(move_credentials, migrations.RunPython.noop, elidable=True),
    ]
