"""Asking for runs: one row for each case at each commit, whoever asks, never two that are alike."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Value
from django.db.models.functions import Greatest, Now
from paceline.manifest import Benchmark

from dashboard import dispatch
from dashboard.models import Case, Commit, Configuration, Experiment, Machine, Pool, Run, Trigger
from dashboard.policy.quiet_projects import quiet_projects
from dashboard.runs.machines import pool_named

MOST_TRIES = 3
# Of a run: what it has in common with another one of the same configuration.
COPIED_FIELDS = ("configuration", "repetitions", "time_limit")

RequestedCase = tuple[Commit, Case, Benchmark]


def request_run(
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

    `benchmark` is what the commit's manifest says; `pool` defaults to the site's own. Wakes workers on
    commit.
    """
    wanted = [(commit, case, benchmark)]
    return request_runs(wanted, pool=pool, quick=quick, priority=priority, trigger=trigger)[0]


def request_runs(
    wanted: Iterable[RequestedCase],
    *,
    pool: str | None = None,
    quick: bool = False,
    priority: int = 0,
    trigger: Trigger | None = None,
) -> list[Run]:
    """As `request_run`, for many: all or none, and one message for each run."""
    listed = list(wanted)
    where = pool_named(pool or settings.PACELINE_POOL)
    with transaction.atomic():
        configurations = get_or_create_configurations(
            ((case, benchmark.version) for _, case, benchmark in listed), where, quick
        )
        rows = []
        for commit, case, benchmark in listed:
            measured = benchmark.as_quick() if quick else benchmark
            row = Run(
                commit=commit,
                configuration=configurations[case.pk, benchmark.version],
                trigger=trigger,
                priority=priority,
                repetitions=measured.repetitions,
                time_limit=measured.time_limit,
            )
            rows.append(row)
        runs = _make_missing(rows)
        _measure_at_once(runs, priority)
        if trigger and trigger.source in Trigger.AWAITED:
            _note_who_waits(runs, trigger)
        if runs:
            dispatch.wake_workers(where.name, len(runs))
    return runs


def get_or_create_configurations(
    wanted: Iterable[tuple[Case, int]], pool: Pool, quick: bool
) -> dict[tuple[int, int], Configuration]:
    """The configurations of these cases and versions on a pool, by the case's key and the version."""
    keys = sorted({(case.pk, version) for case, version in wanted})
    rows = [Configuration(case_id=case, version=version, pool=pool, quick=quick) for case, version in keys]
    Configuration.objects.bulk_create(rows, ignore_conflicts=True)
    known = Configuration.objects.filter(case__in={case for case, _ in keys}, pool=pool, quick=quick)
    return {(row.case_id, row.version): row for row in known.select_related("case", "pool")}


def repeat_run(pattern: Run, commit: Commit, priority: int = 0, not_before: timedelta | None = None) -> Run:
    """Ask for the configuration of another run at this commit, as that run was measured.

    `not_before`: it isn't claimed until so much time has passed. Wakes workers on commit.
    """
    row = Run(commit=commit, **{name: getattr(pattern, name) for name in COPIED_FIELDS}, priority=priority)
    row.not_before = Now() + not_before if not_before else None
    with transaction.atomic():
        run = _make_missing([row])[0]
        if not_before is None:
            _measure_at_once([run], priority)
            dispatch.wake_workers(pattern.configuration.pool.name)
    return run


def request_sentinel_run(pattern: Run, commit: Commit, machine: Machine, priority: int) -> Run | None:
    """Ask for a pinned commit again, on this machine alone; None where one of its case waits or is measured.

    Wakes workers on commit.
    """
    row = Run(
        commit=commit,
        **{name: getattr(pattern, name) for name in COPIED_FIELDS},
        origin=Run.Origin.SENTINEL,
        only_on=machine,
        priority=priority,
    )
    with transaction.atomic():
        Run.objects.bulk_create([row], ignore_conflicts=True)
        made = Run.objects.filter(lease=row.lease).first()
        if made:
            dispatch.wake_workers(pattern.configuration.pool.name)
    return made


def has_waiting_experiment(pool: str) -> bool:
    """True where an experiment waits for this pool's machines; asked before what executes it is imported."""
    waiting = Experiment.objects.filter(state=Experiment.State.REQUESTED, head_configuration__pool__name=pool)
    return waiting.exclude(project__in=quiet_projects()).exists()


def _make_missing(rows: list[Run]) -> list[Run]:
    """For each row the run that hasn't ended, in their order; made where there is none."""
    # A sentinel's run of the same commit is none of them: its values don't enter the series.
    same = Run.objects.filter(
        commit__in={row.commit_id for row in rows},
        configuration__in={row.configuration_id for row in rows},
        origin=Run.Origin.MEASURED,
    )
    for _ in range(MOST_TRIES):
        active = {_run_identity(run): run for run in same.exclude(state__in=Run.TERMINAL)}
        missing = {_run_identity(row): row for row in rows if _run_identity(row) not in active}
        if not missing:
            return [active[_run_identity(row)] for row in rows]
        # What somebody else asks for at this moment is a conflict, and found in the next round.
        Run.objects.bulk_create(missing.values(), ignore_conflicts=True)
    raise RuntimeError("Runs end as fast as they are requested.")


def _measure_at_once(runs: Iterable[Run], priority: int) -> None:
    """Somebody waits for them now: none of them waits for a calmer hour, or behind a backlog, any more."""
    waiting = [run for run in runs if run.not_before is not None or run.priority < priority]
    if waiting:
        requested = Run.objects.filter(pk__in=[run.pk for run in waiting], state=Run.State.REQUESTED)
        requested.update(not_before=None, priority=Greatest("priority", Value(priority)))
    for run in waiting:
        run.not_before, run.priority = None, max(run.priority, priority)


def _note_who_waits(runs: Iterable[Run], trigger: Trigger) -> None:
    """What the site asked for by itself, and somebody asks for now: no later push puts it off, and where a
    machine has begun with it nobody ends it with what only the site wants."""
    keys = [run.pk for run in runs if run.trigger_id != trigger.pk]
    going = Run.objects.filter(pk__in=keys).exclude(state__in=Run.TERMINAL)
    going.exclude(trigger__source__in=Trigger.AWAITED).update(awaited_by=trigger)


def _run_identity(run: Run) -> tuple[int, int]:
    return run.commit_id, run.configuration_id
