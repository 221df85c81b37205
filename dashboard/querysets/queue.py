"""What waits and what is measured, in the order in which it is claimed, with how long each took before."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from statistics import median
from typing import Any

from django.db.models import Case, DurationField, ExpressionWrapper, F, OuterRef, QuerySet, Subquery, When
from django.db.models.functions import Now

from dashboard.models import Experiment, Machine, Project, Run, SeriesLatest
from dashboard.querysets.composed import ComposedQuery
from dashboard.querysets.projects import SILENT_AFTER
from dashboard.querysets.runs import runs_with_related
from dashboard.querysets.series import OVERVIEW_METRIC

MOST_WAITING = 150


def held_runs() -> list[Run]:
    """At most MOST_WAITING, of all projects: a machine that measures what a visitor may not view is busy."""
    return _HELD.read_rows()


def waiting_runs() -> list[Run]:
    """At most MOST_WAITING, of all projects, the next one first; where they are more, none that is for later
    instead of one that may begin now."""
    return sorted(_WAITING.read_rows(), key=lambda run: (-run.priority, run.requested_at, run.pk))


_IS_FOR_LATER = Case(When(not_before__gt=Now(), then=1), default=0)
_HELD = ComposedQuery(
    lambda: runs_with_related().filter(state__in=Run.HELD).order_by("claimed_at", "pk")[:MOST_WAITING]
)
_WAITING = ComposedQuery(
    lambda: (
        runs_with_related()
        .filter(state=Run.State.REQUESTED)
        .order_by(_IS_FOR_LATER, "-priority", "requested_at", "pk")[:MOST_WAITING]
    )
)


def count_waiting(visible: QuerySet[Project]) -> int:
    return Run.objects.filter(state=Run.State.REQUESTED, configuration__case__project__in=visible).count()


def count_waiting_experiments() -> int:
    """Those that somebody asked for and that no machine has begun, of all projects."""
    return Experiment.objects.filter(Experiment.IS_AWAITED, state=Experiment.State.REQUESTED).count()


def seconds_by_configuration(configurations: Iterable[int]) -> dict[int, float]:
    """What the newest run of each took from claim to end; without those that never ended one."""
    rows = _newest_ended().filter(series__configuration__in=list(configurations))
    found = rows.values_list("series__configuration_id", "took")
    return {configuration: duration.total_seconds() for configuration, duration in found}


def usual_by_pool(pools: Iterable[int]) -> dict[int, float]:
    """The median, by pool, of what the newest run of each of its cases took."""
    known: dict[int, list[float]] = {}
    rows = _newest_ended().filter(series__configuration__pool__in=list(pools))
    for pool, duration in rows.values_list("series__configuration__pool_id", "took"):
        known.setdefault(pool, []).append(duration.total_seconds())
    return {pool: median(seconds) for pool, seconds in known.items()}


def _newest_ended() -> QuerySet[Any]:
    """Of each configuration its newest run that ended, with `took`."""
    took = ExpressionWrapper(F("run__finished_at") - F("run__claimed_at"), DurationField())
    return SeriesLatest.objects.filter(
        series__metric__name=OVERVIEW_METRIC,
        series__phase="",
        run__claimed_at__isnull=False,
        run__finished_at__isnull=False,
    ).annotate(took=took)


def seconds_of_experiments(now: datetime) -> dict[int, dict[int, float | None]]:
    """By pool and key, of each machine that takes work: the rest of the budget of its experiment, or None.

    What the site asked for gives way after a pair, so that it isn't counted.
    """
    alive = Machine.objects.filter(state=Machine.State.ACTIVE, seen_at__gte=now - SILENT_AFTER)
    measuring = Experiment.objects.filter(
        Experiment.IS_AWAITED, machine=OuterRef("pk"), state=Experiment.State.MEASURING
    )
    left = measuring.annotate(left=F("most_seconds") - F("seconds")).values("left")[:1]
    found: dict[int, dict[int, float | None]] = {}
    for pool, machine, seconds in alive.order_by().values_list("pool", "pk", Subquery(left)):
        found.setdefault(pool, {})[machine] = None if seconds is None else max(0.0, seconds)
    return found
