from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.urls import reverse

from dashboard.access import command_account
from dashboard.environment_variables import read_text
from dashboard.forges.connecting import ConnectingError, ConnectionRequest, connect_project
from dashboard.forges.events import EVENT_NAMES, ForgeKind
from dashboard.management.base import SiteCommand, project_named
from dashboard.models import ForgeConnection, Project
from dashboard.project_setup.changing import record_forge

TOKEN_VARIABLE = "PACELINE_FORGE_TOKEN"  # noqa: S105 - its name
MOST_BYTES = 20_000


class Command(SiteCommand):
    help = (
        "Connect a project with its repository on GitHub, GitLab, Gitea, Forgejo or Bitbucket: what is "
        "pushed there is then measured, and pull requests are answered. The token is tried before it is "
        "kept, encrypted; it is read from a file, from the variable PACELINE_FORGE_TOKEN, or asked for. "
        "docs/forges.md says which rights it needs. Connecting again changes what is given. "
        "Example: manage.py connect_forge my-training --kind github --repository me/my-training"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG", help="the project's name")
        parser.add_argument("--kind", choices=list(ForgeKind), help="the kind of forge")
        parser.add_argument("--repository", metavar="OWNER/NAME", help="the repository's name there")
        parser.add_argument(
            "--api",
            default="",
            metavar="URL",
            help="the address of a forge of your own, as https://git.example.org",
        )
        parser.add_argument(
            "--token-from",
            type=Path,
            metavar="FILE",
            help="read the token, or an app's private key, from a file",
        )
        parser.add_argument(
            "--app-id", default="", metavar="N", help="the number of a GitHub App that answers"
        )
        parser.add_argument(
            "--installation", default="", metavar="N", help="the number of the app's installation"
        )
        parser.add_argument(
            "--renew-secret", action="store_true", help="sign the forge's requests with a new secret"
        )
        parser.add_argument(
            "--remove", action="store_true", help="forget the connection, its token and its secret"
        )

    def perform(self, **options: Any) -> None:
        project = project_named(options["slug"])
        if options["remove"]:
            self.remove_connection(project)
            return
        if not options["kind"] or not options["repository"]:
            raise CommandError("Say what to connect, by --kind and --repository.")
        wanted = ConnectionRequest(
            kind=options["kind"],
            repository=options["repository"],
            token=read_token(options["token_from"]),
            api_address=options["api"],
            app_id=options["app_id"],
            installation=options["installation"],
        )
        try:
            connection, new = connect_project(project, wanted, renew_secret=options["renew_secret"])
        except ConnectingError as error:
            raise CommandError(str(error)) from error
        record_forge(command_account(), connection, "connected")
        self.describe_connection(connection, new)

    def remove_connection(self, project: Project) -> None:
        connection = ForgeConnection.objects.filter(project=project).first()
        if connection is None:
            raise CommandError(f"{project} isn't connected with any forge.")
        record_forge(command_account(), connection, "disconnected")
        connection.delete()
        self.stdout.write(
            f"{project} is connected no more: delete its webhook and its token on the forge too."
        )

    def describe_connection(self, connection: ForgeConnection, new: bool) -> None:
        url = settings.PACELINE_URL + reverse("forge-hook", args=[connection.project.slug])
        self.stdout.write(
            f"{connection.project} is connected with {connection}.\n"
            f"Add a webhook there: {url}\n"
            f"Its events: {EVENT_NAMES[ForgeKind(connection.kind)]}."
        )
        if new:
            self.stdout.write(f"Its secret, shown only now: {connection.webhook_secret}")


def read_token(file: Path | None) -> str:
    """The token, from a place where no other account reads it: never from the arguments."""
    if file is not None:
        try:
            with file.expanduser().open() as opened:
                return opened.read(MOST_BYTES)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it isn't text"
            raise CommandError(f"{file} can't be read: {reason}.") from error
    if token := read_text(TOKEN_VARIABLE):
        return token
    if not sys.stdin.isatty():
        raise CommandError(f"Give the token by --token-from FILE or by {TOKEN_VARIABLE}.")
    return getpass.getpass("Token: ")
