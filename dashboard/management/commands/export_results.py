from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from paceline.progress_bar import ProgressBar

from dashboard.access import AuditAction, command_account, record_action
from dashboard.archive import archive_name, compress_lines, write_archive
from dashboard.management.base import SiteCommand, project_named
from dashboard.sentences.formatting.numbers import format_quantity


class Command(SiteCommand):
    help = (
        "Write everything of a project into one file: settings without secrets, commits, cases, series, "
        "points with their samples, runs with their documents and logs, changes, regressions with what was "
        "said of them, experiments, limits, channels without secrets. docs/export.md describes the file; "
        "import_results --format paceline makes a project of it again, here or elsewhere. It is read in one "
        "snapshot, while the site goes on. "
        "Examples: manage.py export_results my-training; "
        "manage.py export_results my-training --output - | ssh backup 'cat > my-training.jsonl.gz'"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG", help="the project's name")
        parser.add_argument(
            "--output",
            metavar="PATH",
            help="the file, which must not be there yet; - is standard output. "
            "Default: SLUG.paceline.jsonl.gz in the current folder",
        )

    def perform(self, **options: Any) -> None:
        project = project_named(options["slug"])
        record_action(command_account(), AuditAction.RESULTS_EXPORTED, project, project)
        if options["output"] == "-":
            for piece in compress_lines(write_archive(project)):
                sys.stdout.buffer.write(piece)
            return
        path = Path(options["output"] or archive_name(project)).expanduser()
        # Its name appears when it is whole: what was interrupted isn't taken for an archive.
        draft = path.with_name(f"{path.name}.part")
        if path.exists():
            raise CommandError(f"{path} is there already: give another --output.")
        try:
            with ProgressBar() as bar, draft.open("wb") as file:
                lines = write_archive(
                    project, lambda done, total: bar.show(done / total, f"{done} of {total} tables")
                )
                for piece in compress_lines(lines):
                    file.write(piece)
            draft.rename(path)
        except OSError as error:
            raise CommandError(f"{path} can't be written: {error.strerror}.") from error
        finally:
            draft.unlink(missing_ok=True)
        self.stdout.write(f"{project} is in {path} ({format_quantity(path.stat().st_size, 'B')}).")
