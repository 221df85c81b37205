"""One pinned commit of each configuration, measured on its machine again and again: who pins it, and when it
is due.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import cast

from django.db import transaction
from django.db.models import Max, Q, QuerySet
from django.utils import timezone

from dashboard import runs
from dashboard.models import (
    Commit,
    Configuration,
    Machine,
    Point,
    Project,
    Regression,
    Run,
    Sentinel,
    SentinelPoint,
)

DAILY = timedelta(hours=24)
# Beside an experiment a measurement that is older than this is made again.
STALE_AFTER = timedelta(hours=4)
# A case that nobody measures any more needs no sentinel, nor does a machine that isn't there.
CASE_SEEN_WITHIN = timedelta(days=3)
MACHINE_SEEN_WITHIN = timedelta(hours=1)
# Of a daily measurement: after all that anybody waits for. Of one beside an experiment: as the proof's runs.
PRIORITY = -20
PRIORITY_BESIDE_EXPERIMENT = 5
GIVEN_UP = "Its machine didn't measure it within a day."


def watch_machines(now: datetime | None = None) -> list[Run]:
    """Request what is due, on every machine; make the sentinels that are missing. Safe to repeat."""
    at = now or timezone.now()
    give_up_waiting_runs(at)
    asked = []
    for newest in newest_active_runs(at):
        with transaction.atomic():
            sentinel = get_or_pin_sentinel(newest)
            if sentinel and (last := last_requested_at(sentinel)) and at - last >= DAILY:
                asked.append(
                    runs.request_sentinel_run(
                        newest, sentinel.commit, cast(Machine, newest.machine), PRIORITY
                    )
                )
    return [run for run in asked if run]


def newest_active_runs(now: datetime) -> list[Run]:
    """The newest run of each case, version and machine that is measured these days and lives."""
    recent = Run.objects.filter(
        state=Run.State.DONE,
        origin=Run.Origin.MEASURED,
        finished_at__gt=now - CASE_SEEN_WITHIN,
        machine__seen_at__gt=now - MACHINE_SEEN_WITHIN,
        configuration__case__project__sentinels=True,
    )
    keys = (
        recent.values("configuration__case", "machine", "configuration__quick")
        .annotate(newest=Max("pk"))
        .values("newest")
    )
    names = ("configuration__case__project", "configuration__pool", "machine", "commit")
    return list(Run.objects.filter(pk__in=keys).select_related(*names).order_by("pk"))


def last_requested_at(sentinel: Sentinel) -> datetime | None:
    """When it was measured last, or asked for: a commit that doesn't run any more isn't tried all day."""
    measured: datetime | None = sentinel.points.aggregate(last=Max("measured_at"))["last"]
    asked: datetime | None = sentinel_runs(sentinel).aggregate(last=Max("requested_at"))["last"]
    known = [moment for moment in (measured, asked) if moment]
    return max(known, default=None)


def sentinel_runs(sentinel: Sentinel) -> QuerySet[Run]:
    return Run.objects.filter(
        origin=Run.Origin.SENTINEL,
        configuration=sentinel.configuration_id,
        only_on=sentinel.machine_id,
    )


def give_up_waiting_runs(now: datetime) -> None:
    """Cancel what waited for a machine in vain: measured later it would say nothing about today."""
    waiting = Run.objects.filter(
        origin=Run.Origin.SENTINEL, state=Run.State.REQUESTED, requested_at__lt=now - DAILY
    )
    waiting.update(state=Run.State.CANCELLED, reason=GIVEN_UP, finished_at=now)


def get_or_pin_sentinel(run: Run) -> Sentinel | None:
    """The sentinel of a run's case on its machine, made where there is none; None where nothing is fit."""
    identity = {"configuration": run.configuration, "machine": run.machine}
    known = Sentinel.objects.filter(**identity).select_related("commit", "machine").first()
    if known:
        return known
    chosen = commit_pinned_by_hand(run) or earliest_good_commit(run)
    if chosen is None:
        return None
    commit, hand = chosen
    made, new = Sentinel.objects.get_or_create(**identity, defaults={"commit": commit, "by_hand": hand})
    if new:
        seed_points(made)
    return made


def commit_pinned_by_hand(run: Run) -> tuple[Commit, bool] | None:
    """What a person has pinned for the case on another machine holds for this one too."""
    pinned = Sentinel.objects.filter(
        configuration__case=run.case, configuration__version=run.version, by_hand=True
    )
    found = pinned.select_related("commit").order_by("-pk").first()
    return (found.commit, True) if found else None


def earliest_good_commit(run: Run) -> tuple[Commit, bool] | None:
    """The commit of the branch that this machine measured first, and that began no regression."""
    bad = Regression.objects.filter(project=run.case.project_id, withdrawn_at=None).values("first_bad")
    found = (
        requested_runs(run.configuration_id, run.machine_id)
        .filter(commit__branch=run.case.project.branch, tainted=False)
        .exclude(commit__in=bad)
        .select_related("commit")
    )
    first = found.order_by("finished_at", "pk").first()
    return (first.commit, False) if first else None


def requested_runs(configuration: int, machine: int | None) -> QuerySet[Run]:
    """The runs that a person or a hook asked for, done and with a time."""
    return Run.objects.filter(
        state=Run.State.DONE,
        origin=Run.Origin.MEASURED,
        configuration=configuration,
        machine=machine,
        finished_at__isnull=False,
    )


def seed_points(sentinel: Sentinel) -> None:
    """What this machine measured of the pinned commit before it was pinned are the first points."""
    runs = requested_runs(sentinel.configuration_id, sentinel.machine_id)
    rows = Point.objects.filter(WATCHED, run__in=runs.filter(commit=sentinel.commit_id)).select_related(
        "run", "series"
    )
    SentinelPoint.objects.bulk_create(
        [
            SentinelPoint(
                sentinel=sentinel,
                run=row.run,
                metric_id=row.series.metric_id,
                value=row.value,
                samples=row.samples,
                tainted=row.tainted,
                measured_at=cast(datetime, row.run.finished_at),
            )
            for row in rows
        ],
        ignore_conflicts=True,
    )


# What is kept of a sentinel: what may raise a suspicion and isn't the same number each time anyway.
WATCHED = Q(series__headline=True, series__phase="", series__exact=False)


def pin_commit(project: Project, commit: Commit, now: datetime | None = None) -> list[Sentinel]:
    """Pin a commit by hand for every case and machine that is measured these days.

    Their history begins anew.
    """
    pinned = []
    for newest in newest_active_runs(now or timezone.now()):
        if newest.case.project_id != project.pk:
            continue
        identity = {"configuration": newest.configuration, "machine": newest.machine}
        with transaction.atomic():
            Sentinel.objects.filter(**identity).exclude(commit=commit).delete()
            made, new = Sentinel.objects.get_or_create(**identity, defaults={"commit": commit})
            Sentinel.objects.filter(pk=made.pk).update(by_hand=True)
            if new:
                seed_points(made)
            if not made.points.exists():
                runs.request_sentinel_run(newest, commit, cast(Machine, newest.machine), PRIORITY)
            pinned.append(made)
    return pinned


def measure_beside(configuration: Configuration, machine: Machine, now: datetime | None = None) -> Run | None:
    """An experiment begins on this machine: have its sentinel measured too, unless that is fresh.

    Only one that has been measured before can be compared with anything. Nobody waits for it.
    """
    sentinel = find_sentinel(configuration.pk, machine)
    if sentinel is None or not sentinel.case.project.sentinels or not sentinel.points.exists():
        return None
    last = last_requested_at(sentinel)
    if last and (now or timezone.now()) - last < STALE_AFTER:
        return None
    pattern = requested_runs(sentinel.configuration_id, machine.pk)
    newest = pattern.select_related("configuration__case", "configuration__pool").order_by("-pk").first()
    return (
        runs.request_sentinel_run(newest, sentinel.commit, machine, PRIORITY_BESIDE_EXPERIMENT)
        if newest
        else None
    )


def find_sentinel(configuration: int, machine: Machine | int) -> Sentinel | None:
    found = Sentinel.objects.filter(configuration=configuration, machine=machine)
    return found.select_related("commit", "machine", "configuration__case__project").first()
