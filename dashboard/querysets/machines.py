"""Machines as pages read them: what each does, what waits for it, and how far its runs can be trusted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.contrib.postgres.fields import ArrayField
from django.db.models import Count, Exists, F, Func, Min, OuterRef, Q, QuerySet, Subquery, TextField, Value
from django.db.models.functions import JSONObject

from dashboard.models import Experiment, Machine, Metric, Pool, Project, Run, Sentinel, SentinelPoint
from dashboard.querysets.composed import ComposedQuery, Given
from dashboard.querysets.runs import runs_with_related
from dashboard.querysets.sight import SeenProjects, Sight

# The newest runs of a machine by which the list judges it.
NEWEST_RUNS = 50
DOUBTS_WITHIN = timedelta(days=30)
CALIBRATED_RUNS = 200
MOST_SENTINELS = 6
SENTINEL_POINTS = 120
SENTINEL_METRIC = "step_time"


def machines_with_newest_runs() -> QuerySet[Machine]:
    """By pool and name, each with its newest done runs: `newest_runs`, of dicts `tainted` and `codes`."""
    newest = Run.objects.filter(machine=OuterRef("pk"), state=Run.State.DONE).order_by("-claimed_at")
    members = JSONObject(tainted="tainted", codes="warning_codes")
    found = ArraySubquery(newest.values(member=members)[:NEWEST_RUNS])
    return Machine.objects.select_related("pool").annotate(newest_runs=found).order_by("pool__name", "name")


def listed_machines() -> QuerySet[Machine]:
    return machines_with_newest_runs().exclude(state=Machine.State.RETIRED)


def retired_machines() -> QuerySet[Machine]:
    """The names alone: a site may have retired many."""
    retired = Machine.objects.select_related("pool").filter(state=Machine.State.RETIRED)
    return retired.defer("fingerprint").order_by("-seen_at", "name")


@dataclass(slots=True)
class HeldWork:
    """What a machine measures now: one of each at most, unless a lease of lost work isn't over yet.

    `hidden`: how much more, of projects that the visitor may not view.
    """

    runs: list[Run] = field(default_factory=list)
    experiments: list[Experiment] = field(default_factory=list)
    hidden: int = 0

    def __bool__(self) -> bool:
        return bool(self.runs or self.experiments or self.hidden)


def work_by_machine(machines: Iterable[Machine], seen: SeenProjects) -> dict[int, HeldWork]:
    """By the machine's key; what holds nothing is left out."""
    work: dict[int, HeldWork] = defaultdict(HeldWork)
    values = {"machines": [machine.pk for machine in machines], **seen.values}
    for run in _HELD_RUNS.read_rows(seen.sight, **values):
        held_work = work[run.machine_id]
        if run.shown:
            held_work.runs.append(run)
        held_work.hidden += not run.shown
    for experiment in _HELD_EXPERIMENTS.read_rows(seen.sight, **values):
        held_work = work[experiment.machine_id]
        if experiment.shown:
            held_work.experiments.append(experiment)
        held_work.hidden += not experiment.shown
    return dict(work)


def _compose_held_runs(sight: Sight) -> QuerySet[Run]:
    rows = runs_with_related().filter(state__in=Run.HELD, machine__in_array=Given("machines"))
    return rows.annotate(
        shown=Exists(sight.given_projects().filter(pk=OuterRef("configuration__case__project")))
    )


def _compose_held_experiments(sight: Sight) -> QuerySet[Experiment]:
    rows = Experiment.objects.filter(state__in=Experiment.HELD, machine__in_array=Given("machines"))
    rows = rows.annotate(shown=Exists(sight.given_projects().filter(pk=OuterRef("project"))))
    related = rows.select_related("metric", "base_configuration__case").defer("profiles", "commands")
    return related.order_by("pk")


_HELD_RUNS = ComposedQuery(_compose_held_runs)
_HELD_EXPERIMENTS = ComposedQuery(_compose_held_experiments)


@dataclass(slots=True)
class WaitingWork:
    """What the machines of a pool may claim now; `oldest`: since when the oldest of it has been asked for."""

    runs: int = 0
    experiments: int = 0
    oldest: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.runs or self.experiments)


RUN_POOL = ("configuration__pool__name", "number", "since")
EXPERIMENT_POOL = ("head_configuration__pool__name", "number", "since")


def work_waiting_by_pool(now: datetime) -> dict[str, WaitingWork]:
    """By the pool's name. Runs that wait for a calmer hour can't be claimed yet, and aren't counted."""
    waiting: dict[str, WaitingWork] = defaultdict(WaitingWork)
    due = Q(not_before=None) | Q(not_before__lte=now)
    found = {"number": Count("pk"), "since": Min("requested_at")}
    runs = Run.objects.filter(due, state=Run.State.REQUESTED).values("configuration__pool__name")
    for name, number, since in runs.annotate(**found).order_by().values_list(*RUN_POOL):
        waiting[name].runs, waiting[name].oldest = number, since
    asked = Experiment.objects.filter(state=Experiment.State.REQUESTED)
    by_pool = asked.values("head_configuration__pool__name").annotate(**found).order_by()
    for name, number, since in by_pool.values_list(*EXPERIMENT_POOL):
        waiting[name].experiments, waiting[name].oldest = number, min(waiting[name].oldest or since, since)
    return dict(waiting)


def served_pools() -> set[str]:
    """The names of the pools that have a machine which isn't retired."""
    there = Machine.objects.exclude(state=Machine.State.RETIRED)
    return set(there.order_by().values_list("pool__name", flat=True).distinct())


def pool_names() -> list[str]:
    return list(Pool.objects.order_by("name").values_list("name", flat=True))


def machine_runs(machine: Machine, visible: QuerySet[Project]) -> QuerySet[Run]:
    """What it measured and measures of these projects, the newest first."""
    runs = runs_with_related().filter(machine=machine, configuration__case__project__in=visible)
    return runs.order_by("-claimed_at", "-pk")


@dataclass(frozen=True, slots=True)
class CodeCount:
    """In how many runs a warning's code stood, how many of these are kept out of judgement, and its share
    of all runs.
    """

    code: str
    runs: int
    tainted: int
    share: float


EVERY_RUN = ""


def count_warning_codes(machine: Machine, now: datetime) -> tuple[int, list[CodeCount]]:
    """(done runs, how often each code) within the last days, the most frequent code first."""
    recent = Run.objects.filter(machine=machine, state=Run.State.DONE, claimed_at__gt=now - DOUBTS_WITHIN)
    # Each run has one code more: that of every run.
    codes = Func(
        F("warning_codes"),
        Value(EVERY_RUN),
        function="array_append",
        output_field=ArrayField(TextField()),
    )
    counted = recent.annotate(code=Func(codes, function="unnest", output_field=TextField())).values("code")
    counted = counted.annotate(number=Count("pk"), kept_out=Count("pk", filter=Q(tainted=True)))
    rows = list(counted.order_by("-number", "code").values_list("code", "number", "kept_out"))
    measured = sum(number for code, number, _ in rows if code == EVERY_RUN)
    return measured, [
        CodeCount(code, number, kept_out, number / measured)
        for code, number, kept_out in rows
        if code != EVERY_RUN
    ]


@dataclass(frozen=True, slots=True)
class CalibratedRun:
    """What the calibration loop took in one run, in seconds, and whether it drifted while that measured."""

    run: int
    configuration: int
    claimed_at: datetime
    seconds: float
    drifted: bool


def calibrated_runs(machine: Machine, visible: QuerySet[Project]) -> list[CalibratedRun]:
    """The newest ones of these projects, the oldest of these first."""
    rows = Run.objects.filter(machine=machine, claimed_at__isnull=False, calibration__isnull=False)
    rows = rows.filter(configuration__case__project__in=visible)
    newest = rows.order_by("-claimed_at").values_list(
        "pk", "configuration", "claimed_at", "calibration", "warning_codes"
    )
    return [
        CalibratedRun(pk, configuration, claimed_at, seconds, "calibration_drift" in codes)
        for pk, configuration, claimed_at, seconds, codes in newest[:CALIBRATED_RUNS]
        if claimed_at and seconds
    ][::-1]


def sentinels_with_points(machine: Machine, visible: QuerySet[Project]) -> list[Any]:
    """Of these projects those that were measured last; `newest_points` are dicts of their step time.

    The newest first, each with `run`, `value`, `tainted` and `at`, seconds since 1970.
    """
    # By its key, found once, not by a join with its name: else the index doesn't give the newest ones.
    metric = Metric.objects.filter(name=SENTINEL_METRIC).order_by("pk").values("pk")[:1]
    points = SentinelPoint.objects.filter(sentinel=OuterRef("pk"), metric=Subquery(metric))
    newest = points.order_by("-measured_at")
    moment = Func(Value("epoch"), F("measured_at"), function="date_part")
    members = JSONObject(run="run_id", value="value", tainted="tainted", at=moment)
    own = Sentinel.objects.filter(machine=machine, configuration__case__project__in=visible)
    rows = own.annotate(
        measured_at=Subquery(newest.values("measured_at")[:1]),
        newest_points=ArraySubquery(newest.values(member=members)[:SENTINEL_POINTS]),
    )
    related = rows.select_related("configuration__case__project", "commit")
    light = related.defer(
        "configuration__case__project__manifest", "configuration__case__project__hook_secret"
    )
    return list(light.order_by(F("measured_at").desc(nulls_last=True), "pk")[:MOST_SENTINELS])
