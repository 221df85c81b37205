from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from dashboard import retention
from dashboard.management.base import SiteCommand
from dashboard.sentences.numbers import format_count

SECONDS = 3600


class Command(SiteCommand):
    help = (
        "Drop the logs, telemetry, profiles and documents of runs that are older than they are kept "
        "(PACELINE_KEEP_..., docs/operations.md); points and verdicts stay. The site does it by itself. "
        "Example: manage.py prune --dry-run"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="say only of how many runs")
        parser.add_argument(
            "--seconds", type=float, default=SECONDS, metavar="S", help=f"end after S seconds; {SECONDS}"
        )

    def perform(self, **options: Any) -> None:
        dropped = retention.prune_runs(seconds=options["seconds"], dry=options["dry_run"])
        verb = "would be" if options["dry_run"] else "are"
        for part in retention.kept_parts():
            if part.name in dropped:
                self.stdout.write(
                    f"The {part.name} of {format_count(dropped[part.name], 'run')} {verb} dropped "
                    f"({format_count(part.days, 'day')})."
                )
            else:
                self.stdout.write(f"The {part.name} are kept for ever.")
