from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from django.db import IntegrityError, transaction
from paceline.manifest import Benchmark

from dashboard import dispatch
from dashboard.models import Case, Commit, Pool, Run, Trigger
from dashboard.runs.machines import pool_named

TRIES = 3


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
    with transaction.atomic():
        runs = [
            _request(commit, case, benchmark, where, quick, priority, trigger)
            for commit, case, benchmark in wanted
        ]
        if runs:
            dispatch.ring(where.name, len(runs))
    return runs


def _request(
    commit: Commit,
    case: Case,
    benchmark: Benchmark,
    pool: Pool,
    quick: bool,
    priority: int,
    trigger: Trigger | None,
) -> Run:
    measured = benchmark.quickened() if quick else benchmark
    for left in reversed(range(TRIES)):
        active = Run.objects.filter(
            commit=commit, case=case, pool=pool, version=benchmark.version, quick=quick
        ).exclude(state__in=Run.TERMINAL)
        found = active.first()
        if found is not None:
            return found
        try:
            with transaction.atomic():
                return Run.objects.create(
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
        except IntegrityError:
            # Somebody else asked for it since: take theirs, or ask again where it has ended by now.
            if not left:
                raise
    raise AssertionError("the last try returns or raises")
