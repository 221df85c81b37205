"""One lease for all work that one process at a time does: runs, experiments, deliveries.

Each transition is one UPDATE that compares the row's key, its state and the lease, and looks at how many rows
it changed. Time is the database's: the clocks of machines may differ.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any, TypeVar
from uuid import uuid4

from django.conf import settings
from django.contrib.postgres.functions import RandomUUID
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Greatest, Now

from dashboard.host_protocol import Lease
from dashboard.models import Machine
from dashboard.models.leases import Leased, LeasedJob

Row = TypeVar("Row", bound=Leased)
Job = TypeVar("Job", bound=LeasedJob)


class LeaseLost(Exception):  # noqa: N818 - reads as a fact
    """It is no longer the caller's: it was cancelled, or given up for lost and requested again."""


def lease_of(row: Leased) -> Lease:
    return Lease(row.pk, row.attempt, row.lease)


def lease_end(seconds: float | None = None) -> Any:
    return Now() + timedelta(seconds=seconds or settings.PACELINE_LEASE_SECONDS)


def claim_first(waiting: QuerySet[Row], *, seconds: float | None = None, **values: Any) -> int | None:
    """Take the first row of an ordered query, with a new lease and `values`.

    Its key; None where nothing waits.

    What others are just taking is skipped: two claims never wait for each other nor share a row.
    """
    with transaction.atomic():
        free = waiting.select_for_update(skip_locked=True, of=("self",))
        key: int | None = free.values_list("pk", flat=True).first()
        if key is None:
            return None
        claimed = {"attempt": F("attempt") + 1, "lease": uuid4(), "lease_until": lease_end(seconds)}
        waiting.model._default_manager.filter(pk=key).update(**claimed, **values)
        return key


def held_row(model: type[Row], lease: Lease, **states: Any) -> QuerySet[Row]:
    """The row, as long as it is the lease's."""
    return model._default_manager.filter(pk=lease.key, lease=lease.token, **states)


def held_job(model: type[Job], lease: Lease) -> QuerySet[Job]:
    return held_row(model, lease, state__in=model.HELD)


def renew_lease(model: type[Job], lease: Lease, **shown: Any) -> bool:
    """Renew the lease and keep what is shown of the work. False: it is no longer the caller's."""
    return bool(renewable_job(model, lease).update(lease_until=lease_end(), **shown))


def renewable_job(model: type[Job], lease: Lease) -> QuerySet[Job]:
    """As `held_job`, until its holder has had it for longer than it may take."""
    return held_job(model, lease).exclude(model.IS_OVERDUE)


def holds_work(model: type[Job], machine: Machine) -> bool:
    """Whether a machine holds one whose lease isn't over."""
    held = model._default_manager.filter(machine=machine, state__in=model.HELD)
    return held.filter(lease_until__gt=Now()).exists()


def renew_all(model: type[Job]) -> int:
    """Renew every lease, whoever holds it. How many."""
    return model._default_manager.filter(state__in=model.HELD).update(lease_until=lease_end())


def end_job(jobs: QuerySet[Job], state: str, **values: Any) -> int:
    """Bring jobs to a terminal state. How many."""
    return jobs.update(state=state, finished_at=Now(), lease_until=None, activity="", **values)


def requeue_lost(
    model: type[Job], again: Mapping[str, Any], given_up_as: Mapping[str, Any]
) -> tuple[list[int], list[int]]:
    """Request again what lost its holder, or end what was lost too often. The keys of both.

    `again` and `given_up_as` are the columns that the model has beside those of every job.
    """
    return requeue_jobs(model._default_manager.filter(lease_until__lt=Now()), again, given_up_as)


def requeue_jobs(
    jobs: QuerySet[Job], again: Mapping[str, Any], given_up_as: Mapping[str, Any]
) -> tuple[list[int], list[int]]:
    """As `requeue_lost`, of these jobs."""
    model = jobs.model
    with transaction.atomic():
        # A heartbeat that comes in between has the row locked, or finds it gone: it is compared again.
        lost = jobs.filter(state__in=model.HELD)
        rows = dict(lost.select_for_update(skip_locked=True, of=("self",)).values_list("pk", "attempt"))
        ended = [key for key, attempt in rows.items() if attempt >= model.MOST_ATTEMPTS]
        waiting = [key for key in rows if key not in ended]
        end_job(model._default_manager.filter(pk__in=ended), lease=RandomUUID(), **given_up_as)
        _request_again(model._default_manager.filter(pk__in=waiting), again)
    return waiting, ended


def release_machine(
    model: type[Job], machine: str, again: Mapping[str, Any], kept: Collection[int] = ()
) -> int:
    """Request again, at once, what a machine held when somebody ended its agent; that costs no attempt.

    How many.
    """
    held = model._default_manager.filter(state__in=model.HELD, machine__name=machine)
    return release_jobs(held.exclude(pk__in=kept), again)


def release_jobs(held: QuerySet[Job], again: Mapping[str, Any]) -> int:
    """Request again, at once, what a holder gave back; that costs no attempt. How many."""
    return _request_again(held, {"attempt": Greatest(F("attempt") - 1, 0), **again})


def _request_again(jobs: QuerySet[Job], values: Mapping[str, Any]) -> int:
    return jobs.update(
        state=jobs.model.REQUESTED, lease=RandomUUID(), lease_until=None, activity="", **values
    )
