"""A stored secret in words, with what sets it again."""

from __future__ import annotations

from dashboard.models import Channel, ForgeConnection, Project, RepositoryTest
from dashboard.secrets.stored import StoredSecret


def describe_secret(secret: StoredSecret) -> str:
    """`hook secret of project x is set`, or how a lost one is set again."""
    if not secret.lost:
        return f"{secret} is set"
    return f"{secret} can't be read any more; set it again: {_command_to_set(secret)}"


def _command_to_set(secret: StoredSecret) -> str:
    row = secret.row
    if isinstance(row, Channel):
        if row.kind == Channel.Kind.WEBHOOK:
            return f"manage.py add_channel {row.project} --webhook {row.address}"
        return f"the page of the channels of {row.project}, or manage.py add_channel"
    if isinstance(row, ForgeConnection):
        again = f"manage.py connect_forge {row.project} --kind {row.kind} --repository {row.repository}"
        return f"{again} --renew-secret" if secret.field == "webhook_secret" else again
    if isinstance(row, Project) and secret.field == "hook_secret":
        return f"manage.py install_hook {row}"
    if isinstance(row, RepositoryTest):
        return "nothing has to, the test of a repository is forgotten after a day"
    return f"manage.py add_project {row} --repository ADDRESS, with the user and password in it"
