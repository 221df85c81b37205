"""Tasks that fail for reasons nobody foresaw: counted, tried after growing pauses, shown, and set aside."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from dashboard import dispatch, outbox
from dashboard.models import FailedJob
from dashboard.postgresql.lost_connections import is_refused_by_driver

logger = logging.getLogger(__name__)

Row = TypeVar("Row")

# After each failure so long; after one more the job is set aside.
PAUSES = (
    timedelta(seconds=30),
    timedelta(minutes=2),
    timedelta(minutes=10),
    timedelta(hours=1),
    timedelta(hours=6),
)
LONGEST_ERROR = 500
MOST_DUE = 100


def try_each(rows: Iterable[Row], act: Callable[[Row], object], subject: str) -> None:
    """Do it for each row that a sweep finds: what is odd about one project's stops none of another's.

    `subject` names a row in the log.
    """
    for row in rows:
        try:
            act(row)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            # The border of a process: the next sweep tries it again.
            logger.exception("%s %s can't be swept", subject, row)


def may_try(task: str, arguments: Sequence[Any]) -> bool:
    """Whether the job never failed, or its pause is over."""
    paused = Q(next_try_at=None) | Q(next_try_at__gt=Now())
    return not FailedJob.objects.filter(paused, task=task, arguments=list(arguments)).exists()


def failing_keys(task: str) -> list[int]:
    """The first arguments of this task's failing jobs: they are sent again from here, and by no sweep."""
    return list(FailedJob.objects.filter(task=task).values_list("arguments__0", flat=True))


def fails_each_time(error: Exception) -> bool:
    """Whether what looks like a passing trouble of the database is none: it was never asked."""
    return is_refused_by_driver(error)


def note_failure(task: str, arguments: Sequence[Any], error: Exception) -> FailedJob:
    """Count the failure; the job's next try is after a longer pause than the one before.

    After the longest it is set aside where it is about something, named by its arguments.
    """
    error_text = f"{type(error).__name__}: {error}".replace("\0", "\N{REPLACEMENT CHARACTER}")[:LONGEST_ERROR]
    with transaction.atomic():
        jobs = FailedJob.objects.select_for_update()
        job, _ = jobs.get_or_create(task=task, arguments=list(arguments))
        job.failures += 1
        job.errors = [*job.errors, error_text][-len(PAUSES) - 1 :]
        if job.failures <= len(PAUSES) or not arguments:
            # What the schedule asks for is about the whole site: it is never set aside.
            job.next_try_at = Now() + PAUSES[min(job.failures, len(PAUSES)) - 1]
        else:
            job.next_try_at = None
        job.save()
    job.refresh_from_db()
    return job


def forget_failures(task: str, arguments: Sequence[Any]) -> None:
    """After it went well."""
    FailedJob.objects.filter(task=task, arguments=list(arguments)).delete()


def send_due_jobs() -> None:
    """Try those again whose pause is over."""
    _send_jobs(FailedJob.objects.filter(next_try_at__lte=Now()).order_by("next_try_at")[:MOST_DUE])


def retry_jobs(jobs: QuerySet[FailedJob]) -> int:
    """Try these at once and from the beginning of their pauses; how many they are."""
    keys = list(jobs.values_list("pk", flat=True))
    FailedJob.objects.filter(pk__in=keys).update(next_try_at=Now(), failures=0)
    _send_jobs(FailedJob.objects.filter(pk__in=keys))
    return len(keys)


def drop_jobs(jobs: QuerySet[FailedJob]) -> int:
    """Forget these, with the messages that ask for them; how many they are."""
    with transaction.atomic():
        for job in jobs:
            outbox.drop_messages(job.task, job.arguments)
        return jobs.delete()[0]


def _send_jobs(jobs: Iterable[FailedJob]) -> None:
    for task, arguments in [(job.task, job.arguments) for job in jobs]:
        dispatch.send_task(task, *arguments)
