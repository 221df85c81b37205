from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from paceline.progress_bar import ProgressBar

from dashboard.access import command_account
from dashboard.management.base import SiteCommand
from dashboard.projects.registration import NewProject, add_project
from dashboard.projects.repository_location import ProjectError

# Each changes that of a project that exists, too.
NUMBERS: tuple[tuple[str, type, str], ...] = (
    ("false-alerts", float, "how many alerts per 100 commits may be false (default: 1)"),
    (
        "hours-per-week",
        float,
        "how many machine hours a week the project trains: regressions then say what they cost",
    ),
    ("experiment-minutes", float, "how long one experiment may measure (default: 20)"),
    ("experiment-pairs", int, "how many pairs of runs one experiment may measure (default: 24)"),
    (
        "experiment-share",
        float,
        "the part of a machine's time that experiments may take while runs wait (default: 0.25)",
    ),
    ("poll", int, "look for new commits every N minutes, where no hook can tell of them (default: 0, never)"),
)
# What these options were called before; scripts may still say so.
EARLIER_NAMES = {
    "experiment-minutes": "confirmation-minutes",
    "experiment-pairs": "confirmation-pairs",
    "experiment-share": "confirmation-share",
}


class Command(SiteCommand):
    help = (
        "Register a git repository as a project. Its benchmarks stand in paceline.toml at the top of the "
        "repository, or, for code that can't be changed, in a file that the site keeps (--manifest). "
        "Adding a project again changes numbers and files that are given, and hides it where --private is. "
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
            "--files",
            type=Path,
            metavar="FOLDER",
            help="keep the text files of this folder beside the manifest: they lie in each commit's checkout",
        )
        parser.add_argument(
            "--private", action="store_true", help="only its members may read it (default: everybody may)"
        )
        for name, kind, explanation in NUMBERS:
            parser.add_argument(f"--{name}", type=kind, metavar="N", help=explanation)
        for name, earlier in EARLIER_NAMES.items():
            kind = {number: kind for number, kind, _ in NUMBERS}[name]
            destination = name.replace("-", "_")
            parser.add_argument(f"--{earlier}", dest=destination, type=kind, help=argparse.SUPPRESS)

    def perform(self, **options: Any) -> None:
        with ProgressBar() as bar:
            bar.show(0, f"Fetching {options['repository']}")
            try:
                new = NewProject(
                    options["slug"],
                    options["repository"],
                    options["branch"],
                    manifest=options["manifest"],
                    files=options["files"],
                    numbers={name: options[name.replace("-", "_")] for name, _, _ in NUMBERS},
                    private=options["private"],
                )
                project = add_project(new, command_account())
            except ProjectError as error:
                raise CommandError(str(error)) from error
            bar.show(1, f"{project.repository} is fetched")
        self.stdout.write(
            f"Project {project} watches {project.branch} of {project.repository}.\n"
            f"Measure its newest commit: manage.py trigger {project} --wait\n"
            f"Measure every commit from now on: manage.py install_hook {project}, or connect_forge {project}"
        )
