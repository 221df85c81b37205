from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from dashboard.alerts import ChannelError, add_channel
from dashboard.management.base import SiteCommand, project_named
from dashboard.models import Channel


class Command(SiteCommand):
    help = (
        "Send a project's alerts to an e-mail address or a webhook. Adding the same one again changes its "
        "minimum. docs/alerts.md says what a webhook receives and how to check its signature. "
        "Example: manage.py add_channel my-training --email team@example.org --minimum-percent 5"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG", help="the project's name")
        address = parser.add_mutually_exclusive_group(required=True)
        address.add_argument("--email", metavar="ADDRESS", help="send an e-mail there")
        address.add_argument("--webhook", metavar="URL", help="send a signed request there")
        parser.add_argument(
            "--minimum-percent",
            type=float,
            default=0.0,
            metavar="P",
            help="tell only changes of P percent and more (default: 0, all)",
        )
        parser.add_argument(
            "--suspicions",
            action="store_true",
            help="tell what is only suspected too, before interleaved runs have confirmed it",
        )

        parser.add_argument(
            "--renew-secret", action="store_true", help="sign a webhook's requests with a new secret"
        )

    def perform(self, **options: Any) -> None:
        project = project_named(options["slug"])
        kind = Channel.Kind.EMAIL if options["email"] else Channel.Kind.WEBHOOK
        address = options["email"] or options["webhook"]
        try:
            channel, new = add_channel(
                project,
                kind,
                address,
                options["minimum_percent"],
                suspicions=options["suspicions"],
                renew_secret=options["renew_secret"],
            )
        except ChannelError as error:
            raise CommandError(str(error)) from error
        minimum = f" of {channel.minimum_percent:g} % and more" if channel.minimum_percent else ""
        alerts = "Regressions and suspicions" if channel.suspicions else "Confirmed regressions"
        self.stdout.write(f"{alerts} of {project}{minimum} are told to {address}.")
        if new and channel.secret:
            self.stdout.write(f"Its requests are signed with this secret, shown only now: {channel.secret}")
