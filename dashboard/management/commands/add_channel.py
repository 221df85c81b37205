from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from dashboard.access import AuditAction, command_account, record_action
from dashboard.alerts import ChannelError, add_channel
from dashboard.alerts.channels import recorded_address
from dashboard.alerts.kinds import KINDS
from dashboard.alerts.kinds.channel_kind import KindField
from dashboard.mail_server import PRINTED, sends_mail
from dashboard.management.base import SiteCommand, project_named
from dashboard.models import Channel

SECRET_VARIABLE = "PACELINE_CHANNEL_SECRET"  # noqa: S105 - a variable's name
# What some kinds want beside their secret: option -> what it is.
OWN_OPTIONS = (Channel.Kind.EMAIL, Channel.Kind.WEBHOOK)
PLAIN_OPTIONS = {"server": "the homeserver of Matrix", "room": "the id of a room of Matrix"}


class Command(SiteCommand):
    help = (
        "Send a project's alerts to an e-mail address, a webhook or a chat. Adding the same one again "
        "changes its minimum. Secrets (the webhook URL of a chat, a token, a key) are never arguments, which "
        "other processes can read: they are asked for, or read from --secret-file or from "
        f"{SECRET_VARIABLE}. "
        "docs/alerts.md says where each service gives them, and what a webhook receives. "
        "Examples: manage.py add_channel my-training --email team@example.org --minimum-percent 5; "
        "manage.py add_channel my-training --kind slack --name '#training'"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG", help="the project's name")
        address = parser.add_mutually_exclusive_group(required=True)
        address.add_argument("--email", metavar="ADDRESS", help="send an e-mail there")
        address.add_argument("--webhook", metavar="URL", help="send a signed request there")
        others = [str(kind) for kind in KINDS if kind not in OWN_OPTIONS]
        address.add_argument("--kind", choices=others, help="post to this service")
        parser.add_argument(
            "--name", default="", metavar="NAME", help="what people call it, such as #training"
        )
        for option, meaning in PLAIN_OPTIONS.items():
            parser.add_argument(f"--{option}", default="", metavar=option.upper(), help=meaning)
        parser.add_argument(
            "--region",
            default="us",
            choices=["us", "eu"],
            help="the service region of PagerDuty (default: us)",
        )
        parser.add_argument("--secret-file", metavar="FILE", help="read the secret from its first line")
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
        kind, written = chosen_destination(options)
        try:
            channel, new = add_channel(
                project,
                kind,
                written,
                options["minimum_percent"],
                suspicions=options["suspicions"],
                renew_secret=options["renew_secret"],
                name=options["name"],
            )
        except ChannelError as error:
            raise CommandError(str(error)) from error
        change = "added" if new else "edited"
        about = {"kind": str(kind), "address": recorded_address(channel), "change": change}
        record_action(command_account(), AuditAction.CHANNEL_CHANGED, project, channel, **about)
        minimum = f" of {channel.minimum_percent:g} % and more" if channel.minimum_percent else ""
        alerts = "Regressions and suspicions" if channel.suspicions else "Confirmed regressions"
        place = channel.address if kind in OWN_OPTIONS else str(channel)
        self.stdout.write(f"{alerts} of {project}{minimum} are sent to {place}.")
        if kind == Channel.Kind.EMAIL and not sends_mail():
            self.stdout.write(PRINTED)
        if new and KINDS[kind].makes_secret:
            self.stdout.write(f"Its requests are signed with this secret, shown only now: {channel.secret}")


def chosen_destination(options: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """The kind, and what is written in each of its fields."""
    if options["email"]:
        return Channel.Kind.EMAIL, {"address": options["email"]}
    if options["webhook"]:
        return Channel.Kind.WEBHOOK, {"address": options["webhook"]}
    kind = options["kind"]
    written = {field.name: options.get(field.name) or "" for field in KINDS[kind].fields if not field.secret}
    for field in KINDS[kind].fields:
        if field.secret:
            written[field.name] = read_secret(field, options["secret_file"])
    return kind, written


def read_secret(field: KindField, file: str | None) -> str:
    """From the file, the environment, or a person's typing that isn't shown."""
    if file:
        try:
            lines = Path(file).read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"--secret-file: {file} can't be read: {type(error).__name__}.") from error
        return lines[0].strip() if lines else ""
    if text := os.environ.get(SECRET_VARIABLE, "").strip():
        return text
    if not sys.stdin.isatty():
        raise CommandError(f"{field.label} is missing: give --secret-file or set {SECRET_VARIABLE}.")
    return getpass.getpass(f"{field.label} ({field.hint}): ").strip()
