from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from dashboard.accounts.second_factors import reset_second_factor
from dashboard.management.base import SiteCommand, account_named


class Command(SiteCommand):
    help = (
        "Take an account's second factor and its recovery codes away, for who has lost both. Make sure who "
        "asks for it. Example: manage.py reset_second_factor ada"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="of the account")

    def perform(self, **options: Any) -> None:
        user = account_named(options["name"])
        if reset_second_factor(user):
            self.stdout.write(f"{user.username} signs in with the password alone until a new one is set up.")
        else:
            self.stdout.write(f"{user.username} has no second factor.")
