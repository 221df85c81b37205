from __future__ import annotations

import uuid
from datetime import timedelta

from django.db import models
from django.db.models.expressions import Combinable
from django.db.models.functions import Now

# Of preparing and storing, and of an outage of the site, through which a host keeps what it has measured.
HELD_BESIDE = timedelta(days=1, hours=2)


class Leased(models.Model):
    """Work that one process at a time holds, by a lease that it renews; `dashboard.leases` moves it."""

    attempt = models.PositiveSmallIntegerField(default=0, help_text="Counted at each claim.")
    # The holder's proof: every transition compares it, so a worker given up for lost can't write.
    lease = models.UUIDField(default=uuid.uuid4)
    lease_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True


class LeasedJob(Leased):
    """Work that a machine does: a run or an experiment. Its states have the names that these classes give."""

    # Which states a holder may be in, and which are the last.
    HELD: tuple[str, ...]
    TERMINAL: tuple[str, ...]
    REQUESTED: str
    MOST_ATTEMPTS = 3
    # One holder has had it for longer than it may take, all in all: heartbeats renew its lease no more.
    IS_OVERDUE: models.Q

    activity = models.CharField(max_length=200, blank=True, help_text="What it is doing, for people.")
    requested_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True


def is_overdue(claimed_at: str, seconds: Combinable) -> models.Q:
    """Of rows that were claimed at the time in a column, and may be measured for so many seconds."""
    second = models.Value(timedelta(seconds=1), output_field=models.DurationField())
    measured = models.ExpressionWrapper(seconds * second, output_field=models.DurationField())
    return models.Q(**{f"{claimed_at}__lt": Now() - models.Value(HELD_BESIDE) - measured})
