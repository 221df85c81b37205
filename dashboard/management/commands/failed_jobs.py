from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.template.defaultfilters import pluralize

from dashboard import failed_jobs
from dashboard.management.base import SiteCommand
from dashboard.models import FailedJob
from dashboard.sentences.failed_jobs import describe_job


class Command(SiteCommand):
    help = (
        "The site's own jobs that failed for a reason nobody foresaw. Without options it lists them with "
        "what went wrong. Example: manage.py failed_jobs --retry"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("jobs", nargs="*", type=int, metavar="ID", help="these alone (default: all)")
        choice = parser.add_mutually_exclusive_group()
        choice.add_argument("--retry", action="store_true", help="try them at once")
        choice.add_argument("--drop", action="store_true", help="forget them")

    def perform(self, **options: Any) -> None:
        jobs = FailedJob.objects.order_by("pk")
        if options["jobs"]:
            jobs = jobs.filter(pk__in=options["jobs"])
            missing = set(options["jobs"]) - set(jobs.values_list("pk", flat=True))
            if missing:
                raise CommandError(f"There is no failed job {min(missing)}.")
        if options["retry"]:
            self.stdout.write(f"{format_jobs(failed_jobs.retry_jobs(jobs))} tried again.")
        elif options["drop"]:
            self.stdout.write(f"{format_jobs(jobs.delete()[0])} forgotten.")
        else:
            for job in jobs:
                self.stdout.write(f"{job.pk}: {describe_job(job)}: {job.errors[-1]}")
            self.stdout.write(f"{format_jobs(jobs.count())} failing.")


def format_jobs(number: int) -> str:
    """`1 job is`, `2 jobs are`."""
    return f"{number} job{pluralize(number)} {pluralize(number, 'is,are')}"
