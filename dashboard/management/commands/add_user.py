from __future__ import annotations

import getpass
import sys
from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from dashboard.accounts.links import password_link
from dashboard.management.base import SiteCommand


class Command(SiteCommand):
    help = (
        "Make an account. At a terminal it asks for the password; else, or with --link, it prints a link by "
        "which the person sets it, once and within a day. Example: manage.py add_user ada --email ada@x.org"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="by which the person signs in")
        parser.add_argument("--email", default="", help="where a link for a forgotten password is sent")
        parser.add_argument("--admin", action="store_true", help="administers the site: may do everything")
        parser.add_argument(
            "--link", action="store_true", help="print a link instead of asking for a password"
        )

    def perform(self, **options: Any) -> None:
        user = User(
            username=options["name"],
            email=options["email"],
            is_staff=options["admin"],
            is_superuser=options["admin"],
        )
        user.set_unusable_password()
        check_account(user)
        by_link = options["link"] or not sys.stdin.isatty()
        if not by_link:
            user.set_password(self.ask_password(user))
        user.save()
        if by_link:
            self.stdout.write(f"{user.username} sets a password here, once and within a day:")
            self.stdout.write(password_link(user))
        else:
            self.stdout.write(f"{user.username} may sign in.")

    def ask_password(self, user: User) -> str:
        """Until one is good enough and typed twice."""
        while True:
            password = getpass.getpass("Password: ")
            if password != getpass.getpass("Again: "):
                self.stderr.write("These were two different ones.")
                continue
            try:
                validate_password(password, user)
            except ValidationError as error:
                self.stderr.write(" ".join(error.messages))
                continue
            return password


def check_account(user: User) -> None:
    """CommandError, one sentence, for a name or an address that can't be an account's."""
    if User.objects.filter(username__iexact=user.username).exists():
        raise CommandError(
            f"There is an account {user.username} already: manage.py password_link {user.username} makes a "
            "link for a new password."
        )
    try:
        user.clean_fields(exclude=["password"])
    except ValidationError as error:
        field, sentences = next(iter(error.message_dict.items()))
        raise CommandError(f"{'NAME' if field == 'username' else field}: {sentences[0]}") from None
