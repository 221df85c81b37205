from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from paceline.progress_bar import ProgressBar

from dashboard import hosts, services, triggers
from dashboard.management.base import SiteCommand, project_named
from dashboard.models import Experiment, Run
from dashboard.sentences.formatting.numbers import format_count
from dashboard.triggers import TriggerError

POLL_SECONDS = 0.5


class Command(SiteCommand):
    help = (
        "Measure commits of a project; without an option its newest commit. A commit is a hash, a tag or a "
        "branch, and HEAD is the newest commit of the project's branch. What is being measured already is "
        "not requested a second time. Example: manage.py trigger my-training --last 5 --wait"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG", help="the project's name")
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--commit", metavar="REV", help="one commit")
        which.add_argument("--range", metavar="A..B", help="the commits after A up to B, first parents only")
        which.add_argument("--last", metavar="N", help="the last N commits of the project's branch")
        parser.add_argument(
            "--benchmark",
            action="append",
            default=[],
            metavar="NAME",
            help="only this benchmark of the manifest; may be repeated (default: all)",
        )
        parser.add_argument(
            "--wait",
            action="store_true",
            help="wait until the runs have ended, with services started for as long as that takes where none "
            "run; the exit status is 1 if a run failed",
        )

    def perform(self, **options: Any) -> None:
        with services.running_services(settings, hosts.local_join_code) if options["wait"] else nullcontext():
            ids = self.request(options)
            if options["wait"]:
                self.wait(ids)

    def request(self, options: dict[str, Any]) -> list[int]:
        project = project_named(options["slug"])
        with ProgressBar() as bar:
            bar.show(0, f"Reading {project.repository}")
            try:
                revisions = triggers.parse_revisions(options["commit"], options["range"], options["last"])
                trigger, ids = triggers.create_command_trigger(project, revisions, options["benchmark"])
            except TriggerError as error:
                raise CommandError(str(error)) from error
            bar.show(1, f"{project.repository} is read")
        self.stdout.write(f"{project}: {trigger.detail}")
        return ids

    def wait(self, ids: list[int]) -> None:
        try:
            self.wait_for(ids)
        except KeyboardInterrupt:
            raise CommandError("Interrupted: the runs stay, and go on while the services run.") from None

    def wait_for(self, ids: list[int]) -> None:
        with ProgressBar() as bar:
            while True:
                runs = list(
                    Run.objects.filter(pk__in=ids)
                    .select_related("configuration__case", "commit")
                    .order_by("pk")
                )
                bar.show(*summarize_progress(runs))
                if all(run.state in Run.TERMINAL for run in runs):
                    break
                time.sleep(POLL_SECONDS)
        for run in runs:
            self.stdout.write(describe_run(run))
        failed = sum(run.state != Run.State.DONE for run in runs)
        if failed:
            raise CommandError(f"{failed} of {format_count(len(runs), 'run')} failed or were cancelled.")


def summarize_progress(runs: list[Run]) -> tuple[float, str]:
    """How much of all the measuring is over, from 0 to 1, and what is being done."""
    ended = [run for run in runs if run.state in Run.TERMINAL]
    share = (len(ended) + sum(run.progress for run in runs if run not in ended)) / max(len(runs), 1)
    text = f"{len(ended)} of {format_count(len(runs), 'run')}"
    measured = next((run for run in runs if run.state in Run.HELD), None)
    if measured is not None:
        return share, f"{text}; {measured.case} at {measured.commit}: {measured.activity or measured.state}"
    return share, text if len(ended) == len(runs) else f"{text}; {describe_wait()}"


def describe_wait() -> str:
    """What runs wait for that no worker has claimed."""
    ahead = Run.objects.filter(state__in=Run.HELD).order_by("claimed_at").first()
    if ahead:
        return f"waiting behind run {ahead.pk}"
    proof = Experiment.objects.filter(state=Experiment.State.MEASURING).first()
    return f"{proof}: {proof.activity or proof.state}" if proof else "waiting for a worker"


def describe_run(run: Run) -> str:
    outcome = f"{run.case} at {run.commit}: {run.state}"
    return f"{outcome} ({run.failure}): {run.reason}" if run.failure else outcome
