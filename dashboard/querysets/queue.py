"""What waits and what is measured, in the order in which it is claimed, with how long each took before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from statistics import median
from typing import Any

from django.db.models import Case, Count, DurationField, ExpressionWrapper, F, QuerySet, When
from django.db.models.functions import Now

from dashboard.models import Experiment, Machine, Project, Run, SeriesLatest
from dashboard.postgresql.compiled_queries import CompiledQuery
from dashboard.querysets.experiment_order import MOST_OVERTAKING, begun_experiments, order_waiting_experiments
from dashboard.querysets.experiments import experiments_with_related
from dashboard.querysets.projects import SILENT_AFTER
from dashboard.querysets.runs import runs_with_related
from dashboard.querysets.series import OVERVIEW_METRIC

MOST_WAITING = 150
# What the usual experiment takes is read of so many, of all pools.
NEWEST_EXPERIMENTS = 1000


def held_runs() -> list[Run]:
    """At most MOST_WAITING, of all projects: a machine that measures what a visitor may not view is busy."""
    return _HELD.read_rows()


def waiting_runs() -> list[Run]:
    """At most MOST_WAITING, of all projects, the next one first; where they are more, none that is for later
    instead of one that may begin now."""
    return sorted(_WAITING.read_rows(), key=lambda run: (-run.priority, run.requested_at, run.pk))


_IS_FOR_LATER = Case(When(not_before__gt=Now(), then=1), default=0)
_HELD = CompiledQuery(
    lambda: runs_with_related().filter(state__in=Run.HELD).order_by("claimed_at", "pk")[:MOST_WAITING]
)
_WAITING = CompiledQuery(
    lambda: (
        runs_with_related()
        .filter(state=Run.State.REQUESTED)
        .annotate(is_awaited=Case(When(Run.IS_AWAITED, then=True), default=False))
        .order_by(_IS_FOR_LATER, "-priority", "requested_at", "pk")[:MOST_WAITING]
    )
)


def held_experiments() -> list[Experiment]:
    """Of all projects, at most MOST_WAITING."""
    return _HELD_EXPERIMENTS.read_rows()


def waiting_experiments() -> list[Experiment]:
    """Of all projects, at most MOST_WAITING, the next one first."""
    return _WAITING_EXPERIMENTS.read_rows()


_HELD_EXPERIMENTS = CompiledQuery(
    lambda: (
        experiments_with_related()
        .filter(state=Experiment.State.MEASURING)
        .order_by("measuring_at", "pk")[:MOST_WAITING]
    )
)
_WAITING_EXPERIMENTS = CompiledQuery(
    lambda: order_waiting_experiments(experiments_with_related().filter(state=Experiment.State.REQUESTED))[
        :MOST_WAITING
    ]
)


def begun_by_pool(since: Mapping[int, datetime]) -> dict[int, list[Experiment]]:
    """The last that each pool began since its time, of what the site asks for by itself, for
    `experiment_order.take_turns`."""
    begun = begun_experiments().only("pk", "requested_at")
    return {
        pool: list(
            begun.filter(head_configuration__pool=pool, measuring_at__gt=moment)[: MOST_OVERTAKING + 1]
        )
        for pool, moment in since.items()
    }


def count_waiting(visible: QuerySet[Project]) -> int:
    """Runs and experiments that no machine has begun."""
    runs = Run.objects.filter(state=Run.State.REQUESTED, configuration__case__project__in=visible)
    experiments = Experiment.objects.filter(state=Experiment.State.REQUESTED, project__in=visible)
    return runs.count() + experiments.count()


def count_waiting_runs(projects: Iterable[int]) -> dict[int, int]:
    """How many runs no machine has begun, by project; without those of which none waits."""
    waiting = Run.objects.filter(state=Run.State.REQUESTED, project__in=list(projects))
    return dict(
        waiting.order_by().values("project").annotate(number=Count("pk")).values_list("project", "number")
    )


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


def usual_of_experiments() -> dict[tuple[int, str], float]:
    """The median of what the newest experiments took, by pool and question."""
    ended = Experiment.objects.filter(state=Experiment.State.DONE, pairs_of=None, seconds__gt=0).order_by(
        "-pk"
    )
    known: dict[tuple[int, str], list[float]] = {}
    rows = ended.values_list("head_configuration__pool_id", "question", "seconds")
    for pool, question, seconds in rows[:NEWEST_EXPERIMENTS]:
        known.setdefault((pool, question), []).append(seconds)
    return {key: median(seconds) for key, seconds in known.items()}


def working_machines(now: datetime) -> dict[int, list[int]]:
    """By pool, the keys of the machines that take work."""
    alive = Machine.objects.filter(state=Machine.State.ACTIVE, seen_at__gte=now - SILENT_AFTER)
    found: dict[int, list[int]] = {}
    for pool, machine in alive.order_by("pk").values_list("pool", "pk"):
        found.setdefault(pool, []).append(machine)
    return found
