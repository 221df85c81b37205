from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from django.db import transaction
from paceline.manifest import Benchmark

from dashboard import dispatch
from dashboard.models import Case, Commit, Confirmation, Machine, Pool, Run, Trigger
from dashboard.runs.machines import pool_named

TRIES = 3
# Of a run: what it has in common with another one of the same case.
ALIKE = ("case", "pool", "version", "quick", "repetitions", "time_limit")


def request(
    commit: Commit,
    case: Case,
    benchmark: Benchmark,
    *,
    pool: str | None = None,
    quick: bool = False,
    priority: int = 0,
    trigger: Trigger | None = None,
) -> Run:
    """Ask for one case at one commit; an identical run that hasn't ended is returned instead of a second one.

    `benchmark` is what the commit's manifest says; `pool` defaults to the site's own. Rings on commit.
    """
    wanted = [(commit, case, benchmark)]
    return request_all(wanted, pool=pool, quick=quick, priority=priority, trigger=trigger)[0]


def request_all(
    wanted: Iterable[tuple[Commit, Case, Benchmark]],
    *,
    pool: str | None = None,
    quick: bool = False,
    priority: int = 0,
    trigger: Trigger | None = None,
) -> list[Run]:
    """As `request`, for many: all or none, and one bell for each run."""
    where = pool_named(pool or settings.PACELINE_POOL)
    rows = [
        _row(commit, case, benchmark, where, quick=quick, priority=priority, trigger=trigger)
        for commit, case, benchmark in wanted
    ]
    with transaction.atomic():
        runs = _made(rows, where, quick)
        if runs:
            dispatch.wake_workers(where.name, len(runs))
    return runs


def repeat(pattern: Run, commit: Commit, priority: int = 0) -> Run:
    """Ask for the case of another run at this commit, as that run was measured. Rings on commit."""
    row = Run(commit=commit, **{name: getattr(pattern, name) for name in ALIKE}, priority=priority)
    with transaction.atomic():
        run = _made([row], pattern.pool, pattern.quick)[0]
        dispatch.wake_workers(pattern.pool.name)
    return run


def measure_sentinel(pattern: Run, commit: Commit, machine: Machine, priority: int) -> Run | None:
    """Ask for a pinned commit again, on this machine alone; None where one of its case waits or is measured.

    Rings on commit.
    """
    row = Run(
        commit=commit,
        **{name: getattr(pattern, name) for name in ALIKE},
        origin=Run.Origin.SENTINEL,
        only_on=machine,
        priority=priority,
    )
    with transaction.atomic():
        Run.objects.bulk_create([row], ignore_conflicts=True)
        made = Run.objects.filter(lease=row.lease).first()
        if made:
            dispatch.wake_workers(pattern.pool.name)
    return made


def confirmation_waits(pool: str) -> bool:
    """Does a confirmation wait for a machine of this pool? Asked before what carries it out is imported."""
    waiting = Confirmation.objects.filter(state=Confirmation.State.REQUESTED, pool__name=pool)
    return waiting.exists()


def _row(
    commit: Commit,
    case: Case,
    benchmark: Benchmark,
    pool: Pool,
    *,
    quick: bool,
    priority: int,
    trigger: Trigger | None,
) -> Run:
    measured = benchmark.quickened() if quick else benchmark
    return Run(
        commit=commit,
        case=case,
        pool=pool,
        version=benchmark.version,
        quick=quick,
        trigger=trigger,
        priority=priority,
        repetitions=measured.repetitions,
        time_limit=measured.time_limit,
    )


def _made(rows: list[Run], pool: Pool, quick: bool) -> list[Run]:
    """For each row the run that hasn't ended, in their order; made where there is none."""
    commits, cases = {row.commit_id for row in rows}, {row.case_id for row in rows}
    # A sentinel's run of the same commit is none of them: its values don't enter the series.
    same = Run.objects.filter(
        commit__in=commits, case__in=cases, pool=pool, quick=quick, origin=Run.Origin.MEASURED
    )
    for _ in range(TRIES):
        active = {_key(run): run for run in same.exclude(state__in=Run.TERMINAL)}
        missing = {_key(row): row for row in rows if _key(row) not in active}
        if not missing:
            return [active[_key(row)] for row in rows]
        # What somebody else asks for at this moment is a conflict, and found in the next round.
        Run.objects.bulk_create(missing.values(), ignore_conflicts=True)
    raise RuntimeError(f"Runs of pool {pool} end as fast as they are requested.")


def _key(run: Run) -> tuple[int, int, int]:
    return run.commit_id, run.case_id, run.version
