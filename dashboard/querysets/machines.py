"""Machines as pages read them: what each does, what waits for it, and how far its runs can be trusted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.contrib.postgres.fields import ArrayField
from django.db.models import (
    Count,
    DateTimeField,
    Exists,
    F,
    Func,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
)
from django.db.models.functions import JSONObject

from dashboard.models import Experiment, Machine, Metric, Pool, Run, Sentinel, SentinelPoint
from dashboard.postgresql.compiled_queries import NOW, CompiledQuery, Parameter
from dashboard.querysets.deferred_joins import MACHINE_DETAILS, compose_details
from dashboard.querysets.runs import runs_with_related
from dashboard.querysets.visibility import ProjectVisibility, VisibilityRule

# The newest runs of a machine by which the list judges it.
NEWEST_RUNS = 50
DOUBTS_WITHIN = timedelta(days=30)
CALIBRATED_RUNS = 200
LISTED_RUNS = 12
MOST_SENTINELS = 6
SENTINEL_POINTS = 120
SENTINEL_METRIC = "step_time"


# What an archive brought was measured before, maybe on another machine of the same name.
_BROUGHT_BY_ARCHIVE = Q(requested_at__lt=F("project__imported_at"))


def machines_with_newest_runs() -> QuerySet[Machine]:
    """By pool and name, each with its newest done runs: `newest_runs`, of dicts `tainted` and `codes`."""
    done = Run.objects.filter(machine=OuterRef("pk"), state=Run.State.DONE)
    newest = done.exclude(_BROUGHT_BY_ARCHIVE).order_by("-claimed_at")
    members = JSONObject(tainted="tainted", codes="warning_codes")
    found = ArraySubquery(newest.values(member=members)[:NEWEST_RUNS])
    return Machine.objects.select_related("pool").annotate(newest_runs=found).order_by("pool__name", "name")


MACHINES_OF_KEYS = compose_details(machines_with_newest_runs)


def listed_machines() -> QuerySet[Machine]:
    """By pool and name."""
    return Machine.objects.exclude(state=Machine.State.RETIRED).order_by("pool__name", "name")


def retired_machines(most: int) -> list[Machine]:
    """Those that were seen last. The names alone: a site may have retired many."""
    return _RETIRED.read_rows(most)


def _build_retired(most: int) -> QuerySet[Machine]:
    retired = Machine.objects.select_related("pool").filter(state=Machine.State.RETIRED)
    return retired.defer(*MACHINE_DETAILS).order_by("-seen_at", "name")[:most]


_RETIRED = CompiledQuery(_build_retired)


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


def work_by_machine(machines: Iterable[Machine], visibility: ProjectVisibility) -> dict[int, HeldWork]:
    """By the machine's key; what holds nothing is left out."""
    work: dict[int, HeldWork] = defaultdict(HeldWork)
    values = {"machines": [machine.pk for machine in machines], **visibility.values}
    for run in _HELD_RUNS.read_rows(visibility.rule, **values):
        held_work = work[run.machine_id]
        if run.shown:
            held_work.runs.append(run)
        held_work.hidden += not run.shown
    for experiment in _HELD_EXPERIMENTS.read_rows(visibility.rule, **values):
        held_work = work[experiment.machine_id]
        if experiment.shown:
            held_work.experiments.append(experiment)
        held_work.hidden += not experiment.shown
    return dict(work)


def _build_held_runs(rule: VisibilityRule) -> QuerySet[Run]:
    rows = runs_with_related().filter(state__in=Run.HELD, machine__in_array=Parameter("machines"))
    return rows.annotate(
        shown=Exists(rule.given_projects().filter(pk=OuterRef("configuration__case__project")))
    )


def _build_held_experiments(rule: VisibilityRule) -> QuerySet[Experiment]:
    rows = Experiment.objects.filter(state__in=Experiment.HELD, machine__in_array=Parameter("machines"))
    rows = rows.annotate(shown=Exists(rule.given_projects().filter(pk=OuterRef("project"))))
    related = rows.select_related("metric", "base_configuration__case").defer("profiles", "commands")
    return related.order_by("pk")


_HELD_RUNS = CompiledQuery(_build_held_runs)
_HELD_EXPERIMENTS = CompiledQuery(_build_held_experiments)


@dataclass(slots=True)
class WaitingWork:
    """What the machines of a pool may claim now; `oldest`: since when the oldest of it has been asked for."""

    runs: int = 0
    experiments: int = 0
    oldest: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.runs or self.experiments)


def work_waiting_by_pool(now: datetime) -> dict[str, WaitingWork]:
    """By the pool's name. Runs that wait for a calmer hour can't be claimed yet, and aren't counted."""
    waiting: dict[str, WaitingWork] = defaultdict(WaitingWork)
    for name, number, since in _WAITING_RUNS.read_rows(now=now):
        waiting[name].runs, waiting[name].oldest = number, since
    for name, number, since in _WAITING_EXPERIMENTS.read_rows():
        waiting[name].experiments, waiting[name].oldest = number, min(waiting[name].oldest or since, since)
    return dict(waiting)


def _build_waiting_runs() -> QuerySet[Any]:
    due = Q(not_before=None) | Q(not_before__lte=NOW)
    return _count_by(Run.objects.filter(due, state=Run.State.REQUESTED), "configuration__pool__name")


def _build_waiting_experiments() -> QuerySet[Any]:
    asked = Experiment.objects.filter(state=Experiment.State.REQUESTED)
    return _count_by(asked, "head_configuration__pool__name")


def _count_by(rows: QuerySet[Any], pool: str) -> QuerySet[Any]:
    counted: QuerySet[Any] = rows.values(pool).annotate(number=Count("pk"), since=Min("requested_at"))
    return counted.order_by().values_list(pool, "number", "since")


_WAITING_RUNS: CompiledQuery[Any] = CompiledQuery(_build_waiting_runs)
_WAITING_EXPERIMENTS: CompiledQuery[Any] = CompiledQuery(_build_waiting_experiments)


def served_pools() -> set[str]:
    """The names of the pools that have a machine which isn't retired."""
    return set(_SERVED_POOLS.read_rows())


def _build_served_pools() -> QuerySet[Any]:
    there = Machine.objects.exclude(state=Machine.State.RETIRED)
    return there.order_by().values_list("pool__name", flat=True).distinct()


_SERVED_POOLS: CompiledQuery[Any] = CompiledQuery(_build_served_pools)


def pool_names() -> list[str]:
    return _POOL_NAMES.read_rows()


_POOL_NAMES: CompiledQuery[Any] = CompiledQuery(
    lambda: Pool.objects.order_by("name").values_list("name", flat=True)
)


def newest_machine_runs(machine: Machine, visibility: ProjectVisibility) -> list[Run]:
    """What it measured and measures of these projects, the newest first."""
    return _MACHINE_RUNS.read_rows(visibility.rule, machine=machine.pk, **visibility.values)


def _build_machine_runs(rule: VisibilityRule) -> QuerySet[Run]:
    runs = runs_with_related().filter(machine=Parameter("machine"), project__in=rule.given_projects())
    return runs.exclude(_BROUGHT_BY_ARCHIVE).order_by("-claimed_at", "-pk")[:LISTED_RUNS]


_MACHINE_RUNS = CompiledQuery(_build_machine_runs)


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
    rows = _WARNING_CODES.read_rows(machine=machine.pk, since=now - DOUBTS_WITHIN)
    measured = sum(number for code, number, _ in rows if code == EVERY_RUN)
    return measured, [
        CodeCount(code, number, kept_out, number / measured)
        for code, number, kept_out in rows
        if code != EVERY_RUN
    ]


def _build_warning_codes() -> QuerySet[Any]:
    since = Parameter("since", DateTimeField())
    recent = Run.objects.filter(machine=Parameter("machine"), state=Run.State.DONE, claimed_at__gt=since)
    recent = recent.exclude(_BROUGHT_BY_ARCHIVE)
    # Each run has one code more: that of every run.
    codes = Func(
        F("warning_codes"),
        Value(EVERY_RUN),
        function="array_append",
        output_field=ArrayField(TextField()),
    )
    counted = recent.annotate(code=Func(codes, function="unnest", output_field=TextField())).values("code")
    counted = counted.annotate(number=Count("pk"), kept_out=Count("pk", filter=Q(tainted=True)))
    return counted.order_by("-number", "code").values_list("code", "number", "kept_out")


_WARNING_CODES: CompiledQuery[Any] = CompiledQuery(_build_warning_codes)


@dataclass(frozen=True, slots=True)
class CalibratedRun:
    """What the calibration loop took in one run, in seconds, and whether it drifted while that measured."""

    run: int
    configuration: int
    claimed_at: datetime
    seconds: float
    drifted: bool


def calibrated_runs(machine: Machine, visibility: ProjectVisibility) -> list[CalibratedRun]:
    """The newest ones of these projects, the oldest of these first."""
    return [
        CalibratedRun(pk, configuration, claimed_at, seconds, "calibration_drift" in codes)
        for pk, configuration, claimed_at, seconds, codes in _CALIBRATED_RUNS.read_rows(
            visibility.rule, machine=machine.pk, **visibility.values
        )
        if seconds
    ][::-1]


def _build_calibrated_runs(rule: VisibilityRule) -> QuerySet[Any]:
    rows = Run.objects.filter(
        machine=Parameter("machine"),
        project__in=rule.given_projects(),
        claimed_at__isnull=False,
        calibration__isnull=False,
    )
    newest = rows.exclude(_BROUGHT_BY_ARCHIVE).order_by("-claimed_at")
    return newest.values_list("pk", "configuration", "claimed_at", "calibration", "warning_codes")[
        :CALIBRATED_RUNS
    ]


_CALIBRATED_RUNS: CompiledQuery[Any] = CompiledQuery(_build_calibrated_runs)


def sentinels_with_points(machine: Machine, visibility: ProjectVisibility) -> list[Any]:
    """Of these projects those that were measured last; `newest_points` are dicts of their step time.

    The newest first, each with `run`, `value`, `tainted` and `at`, seconds since 1970.
    """
    return _SENTINELS.read_rows(visibility.rule, machine=machine.pk, **visibility.values)


def _build_sentinels(rule: VisibilityRule) -> QuerySet[Sentinel]:
    # By its key, found once, not by a join with its name: else the index doesn't give the newest ones.
    metric = Metric.objects.filter(name=SENTINEL_METRIC).order_by("pk").values("pk")[:1]
    points = SentinelPoint.objects.filter(sentinel=OuterRef("pk"), metric=Subquery(metric))
    newest = points.order_by("-measured_at")
    moment = Func(Value("epoch"), F("measured_at"), function="date_part")
    members = JSONObject(run="run_id", value="value", tainted="tainted", at=moment)
    own = Sentinel.objects.filter(
        machine=Parameter("machine"), configuration__case__project__in=rule.given_projects()
    )
    rows = own.annotate(
        measured_at=Subquery(newest.values("measured_at")[:1]),
        newest_points=ArraySubquery(newest.values(member=members)[:SENTINEL_POINTS]),
    )
    related = rows.select_related("configuration__case__project", "commit")
    light = related.defer(
        "configuration__case__project__manifest", "configuration__case__project__hook_secret"
    )
    return light.order_by(F("measured_at").desc(nulls_last=True), "pk")[:MOST_SENTINELS]


_SENTINELS = CompiledQuery(_build_sentinels)
