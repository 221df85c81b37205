from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from dashboard.access import command_account
from dashboard.management.base import SiteCommand, project_named
from dashboard.triggers.hook_installation import HookRefusedError, install_hooks


class Command(SiteCommand):
    help = (
        "Install git hooks that tell Paceline of new commits on the project's branch: post-commit, "
        "post-merge and post-rewrite where people commit, merge, pull and rebase (the newest commit is "
        "reported), post-receive in a bare repository that they push to (all of them are). They work in the "
        "background and never delay or break a commit; a hook that is there already is kept: it runs "
        "first. "
        "They send a signed request to PACELINE_URL and needs openssl and curl. Run this again after "
        "PACELINE_URL has changed. What the last request was answered stands in .git/paceline/last."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG", help="the project's name")
        parser.add_argument(
            "repository",
            nargs="?",
            type=Path,
            metavar="REPOSITORY",
            help="the repository's folder on this machine (default: the project's own)",
        )

        parser.add_argument(
            "--renew-secret",
            action="store_true",
            help="sign with a new secret; this project's hooks elsewhere have to be installed again",
        )

    def perform(self, **options: Any) -> None:
        project = project_named(options["slug"])
        folder = options["repository"] or Path(project.repository)
        try:
            hooks = install_hooks(
                project,
                folder.expanduser(),
                renew_secret=options["renew_secret"],
                actor=command_account(),
            )
        except HookRefusedError as error:
            raise CommandError(str(error)) from error
        names = " and ".join(hook.name for hook in hooks)
        tell = "tells" if len(hooks) == 1 else "tell"
        self.stdout.write(
            f"{names} in {hooks[0].parent} {tell} {settings.PACELINE_URL} of new commits on {project.branch}."
        )
