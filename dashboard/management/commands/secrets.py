from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.template.defaultfilters import pluralize

from dashboard.access import AuditAction, command_account, record_action
from dashboard.accounts.second_factors import reencrypt_second_factors
from dashboard.environment_variables import read_text
from dashboard.management.base import SiteCommand
from dashboard.secrets.keys import EARLIER, renew_key
from dashboard.secrets.stored import StoredSecret, list_secrets, reencrypt_secrets
from dashboard.sentences.administration.secrets import describe_secret
from dashboard.services.instance import lock_home, running_database
from dashboard.services.processes import Site


class Command(SiteCommand):
    help = (
        "The secrets that the site keeps encrypted by its SECRET_KEY. Without options it lists them, and "
        "says how to set those again that can't be read any more. Example: manage.py secrets --renew-key"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        choice = parser.add_mutually_exclusive_group()
        choice.add_argument(
            "--reencrypt",
            action="store_true",
            help="encrypt all of them with SECRET_KEY: then they don't need SECRET_KEY_FALLBACKS",
        )
        choice.add_argument(
            "--renew-key",
            action="store_true",
            help="make a new key in the folder of the data and encrypt all with it; the site must be stopped",
        )

    def perform(self, **options: Any) -> None:
        if options["renew_key"]:
            self.renew_key()
        elif options["reencrypt"]:
            self.print_secrets(reencrypt_secrets())
            self.reencrypt_factors()
        else:
            self.print_secrets(list_secrets())

    def renew_key(self) -> None:
        if read_text("SECRET_KEY"):
            raise CommandError(
                "SECRET_KEY is set in the environment: put a new one there and this one into "
                "SECRET_KEY_FALLBACKS, start the site's processes again, then run "
                "manage.py secrets --reencrypt."
            )
        site = Site.from_settings(settings)
        # Processes that run would go on with the key before.
        with lock_home(site.home), running_database(site):
            before = settings.SECRET_KEY
            settings.SECRET_KEY = renew_key(site.home)
            settings.SECRET_KEY_FALLBACKS = [before, *settings.SECRET_KEY_FALLBACKS]
            self.print_secrets(reencrypt_secrets())
            self.reencrypt_factors()
            record_action(command_account(), AuditAction.KEY_RENEWED)
        self.stdout.write(
            f"The new key is in {site.home}. The one before is beside it in {EARLIER}, which only sessions "
            "of before need; remove it when you like."
        )

    def reencrypt_factors(self) -> None:
        count = reencrypt_second_factors()
        self.stdout.write(f"{count} key{pluralize(count)} of second factors and recovery codes as well.")

    def print_secrets(self, secrets: list[StoredSecret]) -> None:
        lost = [secret for secret in secrets if secret.lost]
        for secret in secrets:
            self.stdout.write(f"The {describe_secret(secret)}.")
        counted = f"{len(secrets)} secret{pluralize(len(secrets))}"
        self.stdout.write(
            f"{counted}, of which {len(lost)} can't be read with this SECRET_KEY."
            if lost
            else f"{counted}, none of which is lost."
        )
