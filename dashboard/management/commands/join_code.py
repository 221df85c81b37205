from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.core.validators import validate_slug

from dashboard import hosts, runs
from dashboard.access import command_account
from dashboard.management.base import SiteCommand


class Command(SiteCommand):
    help = "Print a code by which one host may join, once, within 15 minutes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--pool", default=settings.PACELINE_POOL, help="default: %(default)s")
        parser.add_argument(
            "--machine", default="", help="the only name it may join as; a machine of that name is replaced"
        )

    def perform(self, **options: Any) -> None:
        try:
            validate_slug(options["pool"])
        except ValidationError:
            raise CommandError("A pool's name consists of letters, digits, - and _.") from None
        self.stdout.write(
            hosts.create_join_code(
                runs.pool_named(options["pool"]), "a command", options["machine"], actor=command_account()
            )
        )
