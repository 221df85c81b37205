from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from dashboard import retention
from dashboard.management.base import SiteCommand, project_named
from dashboard.models import Project
from dashboard.retention.sentences import forecast_sentence
from dashboard.sentences.formatting.numbers import format_count

SECONDS = 3600


class Command(SiteCommand):
    help = (
        "Drop detail of runs that is older than it is kept: logs, telemetry, profiles, documents, and points "
        "of series that no judgement reads (PACELINE_KEEP_... and policies, docs/operations.md). No level "
        "moves by it, and no change is lost. The site does it by itself each hour. "
        "Example: manage.py prune --dry-run"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG", nargs="?", help="this project alone; all")
        parser.add_argument(
            "--dry-run", action="store_true", help="say only what would go, and what is kept for which reason"
        )
        parser.add_argument(
            "--seconds", type=float, default=SECONDS, metavar="S", help=f"end after S seconds; {SECONDS}"
        )

    def perform(self, **options: Any) -> None:
        project = project_named(options["slug"]) if options["slug"] else None
        if options["dry_run"]:
            for row in [project] if project else Project.objects.filter(removed_slug="").order_by("slug"):
                self.stdout.write(f"{row}:")
                for forecast in retention.forecast_project(row):
                    self.stdout.write(f"  {forecast_sentence(forecast)}")
            return
        dropped = retention.prune_runs(seconds=options["seconds"], project=project)
        for kind, runs in dropped.items():
            self.stdout.write(f"The {kind} of {format_count(runs, 'run')} are dropped.")
        if not dropped:
            self.stdout.write("Everything is kept for ever.")
