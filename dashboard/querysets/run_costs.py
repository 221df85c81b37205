"""What runs cost: the parts of one, and their sums by commit and over time, beside what experiments cost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import OuterRef, Q, QuerySet, Subquery, Sum

from dashboard.models import Commit, Machine, Project, Run, RunCost
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter

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
    """What a project's runs and experiments that ended in one week cost; what goes on counts in this one.

    `seconds` is the runs' alone, `gpu_seconds` what both spent on machines with a GPU.
    """

    week: datetime
    runs: int = 0
    commits: int = 0
    seconds: float = 0.0
    measured: float = 0.0
    gpu_seconds: float = 0.0
    experiment_seconds: float = 0.0

    @property
    def machine_seconds(self) -> float:
        return self.seconds + self.experiment_seconds


def gpu_pools(pools: Collection[int]) -> set[int]:
    """Those of these pools in which a machine has a GPU."""
    return set(_GPU_POOLS.read_rows(pools=list(pools)))


def _build_gpu_pools() -> QuerySet[Any]:
    with_gpu = Machine.objects.filter(fingerprint__gpus__0__isnull=False, pool__in_array=Parameter("pools"))
    return with_gpu.values_list("pool_id", flat=True)


_GPU_POOLS: CompiledQuery[Any] = CompiledQuery(_build_gpu_pools)


def parts_of_run(run: Run) -> list[RunCost]:
    """As they were stored, which is their order in time."""
    return _PARTS_OF_RUN.read_rows(run=run.pk)


_PARTS_OF_RUN = CompiledQuery(lambda: RunCost.objects.filter(run=Parameter("run")).order_by("pk"))


def costs_by_commit(commits: Collection[int]) -> dict[int, CommitCost]:
    """By the commit's key; without those whose runs don't tell."""
    found = _COSTS_BY_COMMIT.read_rows(commits=list(commits))
    return {commit: CommitCost(total, measured) for commit, measured, total in found}


def _build_costs_by_commit() -> QuerySet[Any]:
    rows = machine_time(RunCost.objects.filter(run__commit__in_array=Parameter("commits")))
    of_projects = rows.exclude(run__origin=Run.Origin.SENTINEL)
    return of_projects.values_list("run__commit").annotate(**SUMS)


_COSTS_BY_COMMIT: CompiledQuery[Any] = CompiledQuery(_build_costs_by_commit)


def with_machine_seconds(commits: QuerySet[Commit]) -> QuerySet[Commit]:
    """Each with the seconds that machines spent on its runs; None where no run tells."""
    of_commit = machine_time(RunCost.objects.filter(run__commit=OuterRef("pk")))
    summed = of_commit.exclude(run__origin=Run.Origin.SENTINEL).values("run__commit")
    seconds = summed.annotate(total=Sum("seconds")).values("total")
    return commits.annotate(machine_seconds=Subquery(seconds))


@dataclass(frozen=True, slots=True)
class CaseCost:
    """What a project's runs of one case cost."""

    benchmark: str
    key: str
    quick: bool
    runs: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PurposeCost:
    """What a project's experiments of one purpose cost; `pairs` are those that they measured themselves."""

    purpose: str
    experiments: int
    pairs: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ProjectCosts:
    """Of the last weeks: by week the newest first, else the largest first. `parts`: (part, seconds)."""

    weeks: list[WeekCost]
    parts: list[tuple[str, float]]
    cases: list[CaseCost]
    purposes: list[PurposeCost]


# All sums by one look at the rows. The first column tells them apart: 0 to 4 in this order. The parts
# of each run are looked up by its key, as those of other projects are many times as many.
PROJECT_COSTS = """
WITH of_run AS MATERIALIZED (
    SELECT run.id, run.commit_id, run.configuration_id, run.machine_id,
        date_trunc('week', run.finished_at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' AS week
    FROM dashboard_run run
    JOIN dashboard_configuration configuration ON configuration.id = run.configuration_id
    JOIN dashboard_case of_case ON of_case.id = configuration.case_id
    WHERE of_case.project_id = %(project)s AND run.finished_at >= %(since)s
), spent AS MATERIALIZED (
    SELECT of_run.*, cost.part, cost.seconds
    FROM of_run
    CROSS JOIN LATERAL (
        SELECT part, seconds FROM dashboard_runcost
        WHERE run_id = of_run.id AND part <> %(waiting)s
        OFFSET 0
    ) AS cost
), summed AS MATERIALIZED (
    SELECT id, commit_id, configuration_id, machine_id, week, sum(seconds) AS seconds,
        coalesce(sum(seconds) FILTER (WHERE part = %(measured)s), 0) AS measured
    FROM spent
    GROUP BY id, commit_id, configuration_id, machine_id, week
), of_configuration AS (
    SELECT configuration_id, count(*) AS runs, sum(seconds) AS seconds
    FROM summed
    GROUP BY configuration_id
), of_experiment AS MATERIALIZED (
    SELECT experiment.purpose, experiment.seconds,
        date_trunc('week', coalesce(experiment.finished_at, %(now)s) AT TIME ZONE 'UTC')
            AT TIME ZONE 'UTC' AS week,
        machine.fingerprint #> '{gpus,0}' IS NOT NULL AS has_gpu,
        (SELECT count(*) FROM dashboard_experimentpair pair
            WHERE pair.experiment_id = experiment.id AND pair.seconds > 0) AS pairs
    FROM dashboard_experiment experiment
    LEFT JOIN dashboard_machine machine ON machine.id = experiment.machine_id
    WHERE experiment.project_id = %(project)s AND experiment.seconds > 0
        AND coalesce(experiment.finished_at, %(now)s) >= %(since)s
)
SELECT 0, week, NULL, NULL, NULL, NULL::boolean,
    count(*), count(DISTINCT commit_id), sum(seconds), sum(measured),
    coalesce(sum(seconds) FILTER (WHERE machine.fingerprint #> '{gpus,0}' IS NOT NULL), 0)
FROM summed LEFT JOIN dashboard_machine machine ON machine.id = summed.machine_id
GROUP BY week
UNION ALL
SELECT 1, NULL, part, NULL, NULL, NULL, NULL, NULL, sum(seconds), NULL, NULL FROM spent GROUP BY part
UNION ALL
SELECT 2, NULL, NULL, of_case.benchmark, of_case.key, configuration.quick,
    sum(runs)::bigint, NULL, sum(seconds), NULL, NULL
FROM of_configuration
JOIN dashboard_configuration configuration ON configuration.id = configuration_id
JOIN dashboard_case of_case ON of_case.id = configuration.case_id
GROUP BY of_case.benchmark, of_case.key, configuration.quick
UNION ALL
SELECT 3, week, NULL, NULL, NULL, NULL, NULL, NULL, sum(seconds), NULL,
    coalesce(sum(seconds) FILTER (WHERE has_gpu), 0)
FROM of_experiment GROUP BY week
UNION ALL
SELECT 4, NULL, NULL, purpose, NULL, NULL, count(*), sum(pairs)::bigint, sum(seconds), NULL, NULL
FROM of_experiment GROUP BY purpose
"""


def costs_of_project(project: Project, now: datetime) -> ProjectCosts:
    """Of the runs and experiments that ended in the last WEEKS weeks, and the experiments of now."""
    asked: dict[str, Any] = {
        "measured": MEASURED,
        "waiting": RunCost.WAITING,
        "project": project.pk,
        "now": now,
        "since": now - timedelta(weeks=WEEKS),
    }
    weeks: dict[datetime, WeekCost] = {}
    experiments: dict[datetime, tuple[float, float]] = {}
    parts, cases, purposes = [], [], []
    with connection.cursor() as cursor:
        cursor.execute(PROJECT_COSTS, asked)
        for kind, week, part, benchmark, key, quick, runs, commits, total, measured, gpu in cursor.fetchall():
            if kind == 0:
                weeks[week] = WeekCost(week, runs, commits, total, measured, gpu)
            elif kind == 1:
                parts.append((part, total))
            elif kind == 2:
                cases.append(CaseCost(benchmark, key, quick, runs, total))
            elif kind == 3:
                experiments[week] = total, gpu
            else:
                purposes.append(PurposeCost(benchmark, runs, commits, total))
    for week, (total, gpu) in experiments.items():
        row = weeks.get(week, WeekCost(week))
        weeks[week] = replace(row, experiment_seconds=total, gpu_seconds=row.gpu_seconds + gpu)
    return ProjectCosts(
        weeks=sorted(weeks.values(), key=lambda row: row.week, reverse=True),
        parts=sorted(parts, key=lambda row: (-row[1], row[0])),
        cases=sorted(cases, key=lambda row: (-row.seconds, row.benchmark, row.key)),
        purposes=sorted(purposes, key=lambda row: (-row.seconds, row.purpose)),
    )


def machine_time(rows: QuerySet[RunCost]) -> QuerySet[RunCost]:
    """Without the waiting, in which the machine did something else."""
    return rows.exclude(part=RunCost.WAITING)
