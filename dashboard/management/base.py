"""What the commands share: wrong arguments and absent services end them with one sentence and status 1."""

from __future__ import annotations

import difflib
import sys
from typing import Any, NoReturn

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import InterfaceError, OperationalError

from dashboard.models import Project
from dashboard.postgresql.lost_connections import is_database_away
from dashboard.projects.names import find_named_project
from dashboard.services import ServiceError
from dashboard.system_checks import PROGRAMS


class SiteCommand(BaseCommand):
    """Subclasses write `perform`; its CommandErrors and ServiceErrors are for people."""

    # The others look at every address, and import for it what answers there: as long as most commands take.
    # They say what is wrong with the code, which `manage.py check` tells.
    requires_system_checks: tuple[str, ...] = (PROGRAMS,)

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        called_by_a_person = getattr(self, "_called_from_command_line", False)

        def refuse(message: str) -> NoReturn:
            sentence = f"{message.rstrip('.')}; see manage.py {subcommand} --help."
            if not called_by_a_person:
                raise CommandError(sentence)
            sys.stderr.write(f"{sentence[0].upper()}{sentence[1:]}\n")
            sys.exit(1)

        # argparse prints its whole usage and ends with 2.
        parser.error = refuse  # type: ignore[method-assign]
        return parser

    def handle(self, *_arguments: Any, **options: Any) -> None:
        try:
            self.perform(**options)
        except ServiceError as error:
            raise CommandError(str(error)) from error
        except (OperationalError, InterfaceError) as error:
            if not is_database_away(error):
                raise
            reason = " ".join(str(error).split())
            raise CommandError(
                f"The database can't be reached: start it with `make up`, or set DATABASE_URL. ({reason})"
            ) from error

    def perform(self, **options: Any) -> None:
        raise NotImplementedError(f"{type(self).__module__} does nothing.")


def project_named(slug: str) -> Project:
    """The project that is called so, or was before; or a CommandError that names the nearest one."""
    project = find_named_project(slug)
    if project is not None:
        return project
    slugs = list(Project.objects.values_list("slug", flat=True))
    near = difflib.get_close_matches(slug, slugs, n=1, cutoff=0.4)
    if near:
        raise CommandError(f"There is no project {slug!r}; did you mean {near[0]}?")
    if slugs:
        raise CommandError(f"There is no project {slug!r}; known are {', '.join(slugs[:8])}.")
    raise CommandError(f"There is no project {slug!r}, nor any other: begin with manage.py add_project.")


def account_named(name: str) -> User:
    """The account, or a CommandError that says what to do."""
    user = User.objects.filter(username=name).first()
    if user is None:
        raise CommandError(f"There is no account {name!r}: manage.py add_user {name} makes it.")
    return user
