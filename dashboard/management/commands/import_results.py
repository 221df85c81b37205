from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from paceline.progress_bar import ProgressBar

from dashboard import imports, regressions
from dashboard.access import AuditAction, command_account, record_action
from dashboard.imports import ImportedResults, ImportRefused, ImportSummary
from dashboard.management.base import SiteCommand, project_named
from dashboard.models import Change, Project, Regression
from dashboard.sentences.numbers import format_count

READERS: dict[str, Callable[[Path, Callable[[int, int], None]], ImportedResults]] = {
    "asv": imports.read_asv,
    "csv": imports.read_csv,
}
# How much of the bar each part gets.
READ, STORED = 0.2, 0.6


class Command(SiteCommand):
    help = (
        "Bring in what another tool measured: the results folder of airspeed velocity (asv), or a CSV file "
        "with one value per row; docs/importing.md describes its columns. Commits that the project's "
        "repository knows are placed by git; a project without a repository (--create) takes any history, "
        "ordered by date. Then the history is judged, without alerts. Safe to repeat: what is there already "
        "stays, what differs is corrected. Either everything is imported or nothing. "
        "Examples: manage.py import_results my-training --format asv ~/my-benchmarks/results; "
        "manage.py import_results old-history --create --format csv values.csv"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG", help="the project's name")
        parser.add_argument("--format", required=True, choices=sorted(READERS), help="what PATH is")
        parser.add_argument(
            "--create",
            action="store_true",
            help="make the project where there is none: one without a repository, never measured",
        )
        parser.add_argument("path", type=Path, metavar="PATH", help="the results folder (asv) or file (csv)")

    def perform(self, **options: Any) -> None:
        slug, path = options["slug"], options["path"].expanduser()
        # Asked first: a large folder isn't read for a project that isn't there.
        existing = None if options["create"] else project_named(slug)
        try:
            with ProgressBar() as bar:
                results = READERS[options["format"]](path, progress_reporter(bar, 0, READ, f"of {path} read"))
                project, summary = imports.import_runs(
                    existing or slug, results.runs, progress_reporter(bar, READ, STORED, "runs stored")
                )
                about = {"format": options["format"], "points": summary.points}
                record_action(command_account(), AuditAction.RESULTS_IMPORTED, project, project, **about)
                if summary.points or summary.corrected:
                    regressions.redetect_project(
                        project, progress_reporter(bar, STORED, 1, "histories judged")
                    )
        except ImportRefused as error:
            raise CommandError(str(error)) from error
        self.stdout.write(summarize_import(project, results, summary))


def progress_reporter(bar: ProgressBar, start: float, end: float, work: str) -> Callable[[int, int], None]:
    def report_progress(done: int, total: int) -> None:
        share = done / max(total, 1)
        bar.show(start + (end - start) * share, f"{share:.0%} {work}")

    return report_progress


def summarize_import(project: Project, results: ImportedResults, summary: ImportSummary) -> str:
    lines = [
        f"{project}: {format_count(summary.points, 'value')} of {format_count(summary.commits, 'commit')} "
        f"{'is' if summary.points == 1 else 'are'} new, "
        f"{summary.corrected} corrected, {summary.unchanged} were there already."
    ]
    if results.skipped:
        left_out = ", ".join(f"{count} {why}" for why, count in results.skipped.most_common())
        lines.append(f"Results left out: {left_out}.")
    if summary.unplaced:
        lines.append(
            "1 commit isn't in the repository: it is kept, in no order, and not judged."
            if summary.unplaced == 1
            else f"{summary.unplaced:,} commits aren't in the repository: "
            "they are kept, in no order, and not judged."
        )
    changes = Change.objects.filter(series__configuration__case__project=project).count()
    live = Regression.objects.filter(project=project, withdrawn_at=None).count()
    found = f"{format_count(changes, 'change')} and {format_count(live, 'regression')}"
    lines.append(f"Its histories hold {found}.")
    return "\n".join(lines)
