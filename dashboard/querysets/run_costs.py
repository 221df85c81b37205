"""What runs cost: the parts of one, and their sums by commit and over time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import TruncWeek

from dashboard.ingest.costs import WAITING
from dashboard.models import Commit, Machine, Project, Run, RunCost

# Measured steps, by the harness's word.
MEASURED = "window"
WEEKS = 8
SUMS = {"measured": Sum("seconds", filter=Q(part=MEASURED), default=0.0), "total": Sum("seconds")}


@dataclass(frozen=True, slots=True)
class CommitCost:
    """Seconds of machines for one commit, and of measured steps among them."""

    seconds: float
    measured: float


@dataclass(frozen=True, slots=True)
class WeekCost:
    """What a project's runs of one week cost; `gpu_seconds` of it on machines with a GPU."""

    week: datetime
    runs: int
    commits: int
    seconds: float
    measured: float
    gpu_seconds: float


def gpu_machines() -> list[int]:
    """The keys of the machines that have a GPU, as they tell of themselves."""
    with_gpu = Machine.objects.filter(fingerprint__gpus__0__isnull=False)
    return list(with_gpu.values_list("pk", flat=True))


def gpu_pools(pools: Collection[int]) -> set[int]:
    """Those of these pools in which a machine has a GPU."""
    with_gpu = Machine.objects.filter(fingerprint__gpus__0__isnull=False, pool__in=pools)
    return set(with_gpu.values_list("pool_id", flat=True))


def parts_of_run(run: Run) -> list[RunCost]:
    """As they were stored, which is their order in time."""
    return list(RunCost.objects.filter(run=run).order_by("pk"))


def costs_by_commit(commits: Collection[int]) -> dict[int, CommitCost]:
    """By the commit's key; without those whose runs don't tell."""
    rows = machine_time(RunCost.objects.filter(run__commit__in=commits)).exclude(
        run__origin=Run.Origin.SENTINEL
    )
    found = rows.values_list("run__commit").annotate(**SUMS)
    return {commit: CommitCost(total, measured) for commit, measured, total in found}


def with_machine_seconds(commits: QuerySet[Commit]) -> QuerySet[Commit]:
    """Each with the seconds that machines spent on its runs; None where no run tells."""
    of_commit = machine_time(RunCost.objects.filter(run__commit=OuterRef("pk")))
    summed = of_commit.exclude(run__origin=Run.Origin.SENTINEL).values("run__commit")
    seconds = summed.annotate(total=Sum("seconds")).values("total")
    return commits.annotate(machine_seconds=Subquery(seconds))


def costs_by_week(project: Project, now: datetime) -> list[WeekCost]:
    """The last weeks, newest first."""
    rows = recent_costs(project, now).annotate(week=TruncWeek("run__finished_at")).values_list("week")
    on_gpu = Q(run__machine__in=gpu_machines())
    summed = rows.annotate(
        runs=Count("run", distinct=True),
        commits=Count("run__commit", distinct=True),
        **SUMS,
        gpu=Sum("seconds", filter=on_gpu, default=0.0),
    )
    return [
        WeekCost(week, runs, commits, total, measured, gpu)
        for week, runs, commits, measured, total, gpu in summed.order_by("-week")
    ]


def costs_by_part(project: Project, now: datetime) -> list[tuple[str, float]]:
    """(part, seconds) of the last weeks, the largest first."""
    rows = recent_costs(project, now).values_list("part").annotate(total=Sum("seconds"))
    return list(rows.order_by("-total", "part"))


def costs_by_case(project: Project, now: datetime) -> list[tuple[str, str, bool, int, float]]:
    """(benchmark, case, quick, runs, seconds) of the last weeks, the largest first."""
    names = ("benchmark", "key")
    rows = recent_costs(project, now).values_list(
        *(f"run__configuration__case__{name}" for name in names), "run__configuration__quick"
    )
    summed = rows.annotate(runs=Count("run", distinct=True), total=Sum("seconds"))
    return list(summed.order_by("-total"))


def recent_costs(project: Project, now: datetime) -> QuerySet[RunCost]:
    since = now - timedelta(weeks=WEEKS)
    rows = RunCost.objects.filter(run__configuration__case__project=project, run__finished_at__gte=since)
    return machine_time(rows)


def machine_time(rows: QuerySet[RunCost]) -> QuerySet[RunCost]:
    """Without the waiting, in which the machine did something else."""
    return rows.exclude(part=WAITING)
