from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from dashboard.accounts.links import password_link
from dashboard.management.base import SiteCommand, account_named


class Command(SiteCommand):
    help = (
        "Print a link by which somebody sets a new password, once and within a day. Until then the one of "
        "before is good. Example: manage.py password_link ada"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="of the account")

    def perform(self, **options: Any) -> None:
        self.stdout.write(password_link(account_named(options["name"])))
