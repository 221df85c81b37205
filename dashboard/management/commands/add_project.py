from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from dashboard.management.base import SiteCommand
from dashboard.management.progress import Bar
from dashboard.projects import ProjectError, add_project


class Command(SiteCommand):
    help = (
        "Register a git repository as a project. Its benchmarks stand in paceline.toml at the top of the "
        "repository, or, for code that can't be changed, in a file that the site keeps (--manifest). "
        "Example: manage.py add_project my-training --repository ~/my-training"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "slug", metavar="SLUG", help="the project's name in addresses: letters, digits, - and _"
        )
        parser.add_argument(
            "--repository",
            required=True,
            metavar="PATH_OR_URL",
            help="a folder on this machine, or a URL that git can fetch without a password prompt",
        )
        parser.add_argument("--branch", default="main", help="the branch that is watched (default: main)")
        parser.add_argument(
            "--manifest", type=Path, metavar="FILE", help="keep this manifest instead of the commits' own"
        )
        parser.add_argument(
            "--false-alerts",
            type=float,
            metavar="N",
            help="how many alerts per 100 commits may be false (default: 1); it changes that of a project "
            "that exists",
        )

    def perform(self, **options: Any) -> None:
        with Bar() as bar:
            bar.show(0, f"Fetching {options['repository']}")
            try:
                project = add_project(
                    options["slug"],
                    options["repository"],
                    options["branch"],
                    options["manifest"],
                    options["false_alerts"],
                )
            except ProjectError as error:
                raise CommandError(str(error)) from error
            bar.show(1, f"{project.repository} is fetched")
        self.stdout.write(
            f"Project {project} watches {project.branch} of {project.repository}.\n"
            f"Measure its newest commit: manage.py trigger {project} --wait\n"
            f"Measure every commit from now on: manage.py install_hook {project}"
        )
