from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import transaction
from paceline.progress_bar import ProgressBar

from dashboard import imports, regressions
from dashboard.access import AuditAction, command_account, record_action
from dashboard.archive import ArchiveRefused, ImportedArchive, import_archive
from dashboard.imports import ImportedResults, ImportOrigin, ImportRefused, ImportSummary, csv_file
from dashboard.management.base import SiteCommand, project_named
from dashboard.models import Change, Project, Regression
from dashboard.sentences.formatting.numbers import format_count

ReportProgress = Callable[[int, int], None]
# Of these formats the results say everything themselves.
HISTORIES: dict[str, Callable[[Path, ReportProgress], ImportedResults]] = {
    "asv": imports.read_asv,
    "csv": imports.read_csv,
}
# Of these a person may say, or has to, which commit was measured.
READERS: dict[str, Callable[[Path, ImportOrigin, ReportProgress], ImportedResults]] = {
    "bencher": imports.read_bencher,
    "chrome-trace": imports.read_chrome_trace,
    "google-benchmark": imports.read_google_benchmark,
    "lightning": imports.read_lightning,
    "pytest-benchmark": imports.read_pytest_benchmark,
    "torchbench": imports.read_torchbench,
}
ORIGIN = ("commit", "date", "pool", "benchmark")
PATTERNS = {
    "commit": (csv_file.COMMIT, "a hash, a tag or a name of at most 64 letters, digits and . _ / + -"),
    "pool": (csv_file.POOL, "letters, digits, - and _, at most 60"),
    "benchmark": (re.compile(r"[^\x00-\x1f\x7f]{1,100}"), "a name of at most 100 characters"),
}
ARCHIVE = "paceline"
# How much of the bar each part gets.
READ, STORED = 0.2, 0.6


class Command(SiteCommand):
    help = (
        "Bring in what another tool measured: the results folder of airspeed velocity (asv), a CSV file with "
        "one value per row, or files of pytest-benchmark, Google Benchmark, Bencher, TorchBench, Lightning's "
        "profilers or Chrome traces; docs/importing.md says what becomes of each. Or make a project of what "
        "export_results wrote (paceline), judgements included. Commits that the project's "
        "repository knows are placed by git; a project without a repository (--create) takes any history, "
        "ordered by date. Then the history is judged, without alerts. Safe to repeat: what is there already "
        "stays, what differs is corrected. Either everything is imported or nothing. "
        "Examples: manage.py import_results my-training --format asv ~/my-benchmarks/results; "
        "manage.py import_results old-history --create --format csv values.csv; "
        "manage.py import_results my-training --format chrome-trace --commit v1.2 trace.json"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG", help="the project's name")
        parser.add_argument(
            "--format", required=True, choices=sorted((*HISTORIES, *READERS, ARCHIVE)), help="what PATH is"
        )
        parser.add_argument(
            "--create",
            action="store_true",
            help="make the project where there is none: one without a repository, never measured",
        )
        about = f"of formats that may not say it: {', '.join(sorted(READERS))}"
        parser.add_argument("--commit", default="", metavar="REV", help=f"what was measured, {about}")
        parser.add_argument(
            "--date", type=parse_date, metavar="DATE", help="of the commit, such as 2026-03-01"
        )
        parser.add_argument("--pool", default="", help="machines whose results may be compared with these")
        parser.add_argument("--benchmark", default="", metavar="NAME", help="of chrome-trace and lightning")
        parser.add_argument(
            "path", type=Path, metavar="PATH", help="a results folder (asv), a file, or a folder of files"
        )

    def perform(self, **options: Any) -> None:
        slug, path = options["slug"], options["path"].expanduser()
        if options["format"] == ARCHIVE:
            self._make_project(slug, path)
            return
        # Asked first: a large folder isn't read for a project that isn't there.
        existing = None if options["create"] else existing_project(slug)
        try:
            with ProgressBar() as bar:
                results = read_results(options, path, progress_reporter(bar, 0, READ, f"of {path} read"))
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

    def _make_project(self, slug: str, path: Path) -> None:
        """Of an archive, which holds its judgements: nothing is judged anew."""
        try:
            with ProgressBar() as bar, transaction.atomic():
                done = import_archive(slug, path, progress_reporter(bar, 0, 1, f"of {path} read"))
                if done.is_new:
                    about = {"format": ARCHIVE, "points": done.rows["point"]}
                    record_action(
                        command_account(), AuditAction.RESULTS_IMPORTED, done.project, done.project, **about
                    )
        except ArchiveRefused as error:
            raise CommandError(str(error)) from error
        self.stdout.write(summarize_archive(done))


def existing_project(slug: str) -> Project:
    try:
        return project_named(slug)
    except CommandError as error:
        raise CommandError(f"{error} With --create one is made of what is imported.") from error


def parse_date(text: str) -> datetime:
    try:
        parsed = datetime.fromisoformat(text)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ArgumentTypeError(f"{text!r} is no date such as 2026-03-01T08:00:00Z") from None


def read_results(options: dict[str, Any], path: Path, report_progress: ReportProgress) -> ImportedResults:
    stated = (options["commit"], options["date"], options["pool"], options["benchmark"])
    origin = ImportOrigin(*stated, imports.date_reader(options["slug"]))
    for name, (pattern, expected) in PATTERNS.items():
        if options[name] and not pattern.fullmatch(options[name]):
            raise ImportRefused(f"--{name} is {options[name]!r}, not {expected}.")
    if reader := READERS.get(options["format"]):
        return reader(path, origin, report_progress)
    for name in ORIGIN:
        if options[name]:
            raise ImportRefused(f"--{name} isn't for {options['format']}: its results say that themselves.")
    return HISTORIES[options["format"]](path, report_progress)


def progress_reporter(bar: ProgressBar, start: float, end: float, work: str) -> Callable[[int, int], None]:
    def report_progress(done: int, total: int) -> None:
        share = done / max(total, 1)
        bar.show(start + (end - start) * share, f"{share:.0%} {work}")

    return report_progress


def summarize_archive(done: ImportedArchive) -> str:
    if not done.is_new:
        return f"{done.project} was made from this very file: nothing changed."
    names = ("commit", "run", "series", "point", "change", "regression", "experiment")
    counts = ", ".join(
        f"{done.rows[name]:,} series" if name == "series" else format_count(done.rows[name], name)
        for name in names
    )
    lines = [f"{done.project} is made: {counts}."]
    if done.rows["channel"]:
        lines.append("Its channels are off: give their secrets, then turn them on.")
    return "\n".join(lines)


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
