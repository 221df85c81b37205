from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import transaction
from django.db.models import QuerySet
from django.template.defaultfilters import pluralize

from dashboard import failed_jobs
from dashboard.access import AuditAction, command_account, record_action
from dashboard.management.base import SiteCommand
from dashboard.models import FailedJob
from dashboard.sentences.administration.failed_jobs import describe_job


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
            retried = self.change("retry", failed_jobs.retry_jobs, jobs)
            self.stdout.write(f"{format_jobs(retried)} tried again.")
        elif options["drop"]:
            dropped = self.change("drop", failed_jobs.drop_jobs, jobs)
            self.stdout.write(f"{format_jobs(dropped)} forgotten.")
        else:
            for job in jobs:
                self.stdout.write(f"{job.pk}: {describe_job(job)}: {job.errors[-1]}")
            self.stdout.write(f"{format_jobs(jobs.count())} failing.")

    def change(self, name: str, act: Callable[[QuerySet[FailedJob]], int], jobs: QuerySet[FailedJob]) -> int:
        with transaction.atomic():
            number = act(jobs)
            record_action(command_account(), AuditAction.JOBS_CHANGED, change=name, number=number)
        return number


def format_jobs(number: int) -> str:
    """`1 job is`, `2 jobs are`."""
    return f"{number} job{pluralize(number)} {pluralize(number, 'is,are')}"
