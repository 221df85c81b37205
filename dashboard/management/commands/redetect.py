from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from paceline.progress_bar import ProgressBar

from dashboard import regressions
from dashboard.access import AuditAction, command_account, record_action
from dashboard.management.base import SiteCommand, project_named
from dashboard.models import Regression

VERDICTS = {
    "found": "found",
    "moved": "moved to another commit",
    "measured": "of a new size",
    "kept": "kept",
    "withdrawn": "withdrawn",
}


class Command(SiteCommand):
    help = (
        "Judge a project's whole history again: after an update of Paceline, or when runs were deleted. Says "
        "which changes it found, kept and withdrew. Sends no alerts. Safe to repeat. "
        "Example: manage.py redetect my-training"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG", help="the project's name")

    def perform(self, **options: Any) -> None:
        project = project_named(options["slug"])
        with ProgressBar() as bar:
            bar.show(0, f"Judging {project}")
            outcome = regressions.redetect_project(
                project, lambda done, total: bar.show(done / total, f"{done} of {total} histories")
            )
        record_action(command_account(), AuditAction.HISTORY_JUDGED, project, project)
        counts = ", ".join(f"{outcome.counts[kind]} {text}" for kind, text in VERDICTS.items())
        live = Regression.objects.filter(project=project, withdrawn_at=None).count()
        self.stdout.write(
            f"Changes: {counts}.\nRegressions: {live} stand, {len(outcome.opened)} of them new."
        )
