"""When what waits is expected to begin and to end: as long as each took before, in the order of claims."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import heapify, heappop, heappush

from dashboard.models import Experiment, Pool, Project, Run
from dashboard.project_setup.expected_durations import seconds_left_by_progress
from dashboard.querysets.experiment_order import take_turns

Job = Run | Experiment
# Pool and question, of experiments: how many seconds the usual one takes.
UsualExperiments = Mapping[tuple[int, str], float]
BegunExperiments = Mapping[int, Sequence[Experiment]]


@dataclass(frozen=True, slots=True)
class ExpectedJob:
    """Seconds from now: `starts` and `ends`; None where no machine takes it, or nothing says how long it is.

    `takes`: what the newest run of its case took, or the usual experiment; None where there was none: then
    a run is taken to last as the others of its pool, and an experiment `at_most` for its budget.
    """

    job: Job
    starts: float | None
    ends: float | None
    takes: float | None
    at_most: bool = False

    @property
    def run(self) -> Run | None:
        return self.job if isinstance(self.job, Run) else None

    @property
    def experiment(self) -> Experiment | None:
        return self.job if isinstance(self.job, Experiment) else None

    @property
    def unknown_start(self) -> str:
        """Why `starts` is None, in words."""
        if self.run is not None and self.takes is None:
            return "not known"
        named = self.run is not None and self.run.only_on_id is not None
        return f"once {'its machine' if named else 'a machine of its pool'} takes work"

    @property
    def project(self) -> Project:
        return project_of(self.job)

    @property
    def pool(self) -> Pool:
        return pool_of(self.job)


@dataclass(frozen=True, slots=True)
class JobLengths:
    """What is known of how long work takes, in seconds: of runs by configuration, of cases that never ran by
    pool, of experiments by pool and question."""

    took: Mapping[int, float]
    usual: Mapping[int, float]
    experiments: UsualExperiments

    def known(self, job: Job) -> float | None:
        """As the same work took before."""
        if isinstance(job, Run):
            return self.took.get(job.configuration_id)
        return self.experiments.get((pool_of(job).pk, job.question))

    def whole(self, job: Job) -> float | None:
        """As long as it will take from its start; None where nothing tells."""
        known = self.known(job)
        if isinstance(job, Run):
            return self.usual.get(pool_of(job).pk) if known is None else known
        return job.most_seconds if known is None else min(known, job.most_seconds)

    def left(self, job: Job, now: datetime) -> float | None:
        """What is left of it; of an experiment that took longer than usual its whole budget."""
        whole = self.whole(job)
        if isinstance(job, Experiment):
            usual = whole if whole is not None and job.seconds < whole else job.most_seconds
            return max(0.0, usual - job.seconds)
        elapsed = (now - job.claimed_at).total_seconds() if job.claimed_at else 0.0
        measured = (now - job.measuring_at).total_seconds() if job.measuring_at else 0.0
        known = self.known(job)
        by_progress = seconds_left_by_progress(job.progress, measured)
        # In the order in which the run's own page asks them.
        if by_progress is not None and (known is None or known <= elapsed):
            return by_progress
        return None if whole is None else max(0.0, whole - elapsed)

    def waiting(self, job: Job, now: datetime) -> float | None:
        """How long it will take once it begins; an experiment goes on with the pairs that it has."""
        return self.left(job, now) if isinstance(job, Experiment) else self.whole(job)

    def expect(self, job: Job, starts: float | None, ends: float | None) -> ExpectedJob:
        known = self.known(job)
        is_budget = isinstance(job, Experiment) and (known is None or job.seconds >= known)
        return ExpectedJob(job, starts, ends, known, at_most=is_budget)


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """`earliest`: seconds from now before which it isn't claimed; `length`: how long it will take."""

    job: Job
    earliest: float
    length: float


def expect_jobs(
    held: Sequence[Job],
    waiting: Sequence[Job],
    lengths: JobLengths,
    machines: Mapping[int, Sequence[int]],
    now: datetime,
    begun: BegunExperiments | None = None,
) -> list[ExpectedJob]:
    """What is measured, then what waits in the order in which it will begin; last what no machine takes.

    `waiting` in the order of claims among runs and among experiments; `machines`: by pool, the keys of those
    that take work; `begun`: by pool, the last experiments that it began, as `experiment_order.take_turns`
    takes them.
    """
    free: dict[int, dict[int, float]] = {pool: dict.fromkeys(keys, 0.0) for pool, keys in machines.items()}
    awaited = {pool_of(job).pk for job in waiting if is_awaited(job)}
    rows, yielding = [], []
    for job in held:
        if isinstance(job, Experiment) and not is_awaited(job) and pool_of(job).pk in awaited:
            # It gives way after the pair that it measures.
            yielding.append(job)
            continue
        left = lengths.left(job, now)
        # One that is paused ends what it has, and takes nothing more.
        if left is not None and job.machine_id in free.get(pool_of(job).pk, {}):
            free[pool_of(job).pk][job.machine_id] = left
        rows.append(lengths.expect(job, 0.0, left))
    starts = expect_starts([*yielding, *waiting], lengths, free, now, begun or {})
    rows += [lengths.expect(job, 0.0, starts.get(job, (None, None))[1]) for job in yielding]
    line = sorted(waiting, key=lambda job: starts.get(job, (math.inf, 0.0))[0])
    return rows + [lengths.expect(job, *starts.get(job, (None, None))) for job in line]


def expect_starts(
    waiting: Sequence[Job],
    lengths: JobLengths,
    free: Mapping[int, Mapping[int, float]],
    now: datetime,
    begun: BegunExperiments,
) -> dict[Job, tuple[float, float]]:
    """When each begins and ends; without those that no machine takes.

    `free`: by pool, in how many seconds each machine is free.
    """
    by_pool: dict[int, list[Job]] = {}
    for job in waiting:
        by_pool.setdefault(pool_of(job).pk, []).append(job)
    starts: dict[Job, tuple[float, float]] = {}
    for pool, jobs in by_pool.items():
        line = [(job, lengths.waiting(job, now)) for job in in_turn(jobs, begun.get(pool, ()), now)]
        known = [
            WaitingJob(job, seconds_until_due(job, now), length) for job, length in line if length is not None
        ]
        starts.update(hand_out(known, free.get(pool, {})))
    return starts


def in_turn(jobs: Sequence[Job], begun: Sequence[Experiment], now: datetime) -> list[Job]:
    """Of one pool, in the order in which a free machine takes it: see dashboard/experiments/precedence.py.

    What the site asks for by itself takes turns with runs while somebody waits for one of those: here it
    comes behind them.
    """
    runs = [job for job in jobs if isinstance(job, Run)]
    experiments = [job for job in jobs if isinstance(job, Experiment)]
    turns = max((index for index, run in enumerate(runs, start=1) if is_awaited(run)), default=0)
    asked = [job for job in experiments if is_awaited(job)]
    waiting = [job for job in experiments if not is_awaited(job)]
    own = take_turns(waiting, begun, now, lambda job: seconds_until_due(job, now) > 0)
    return [*asked, *runs[:turns], *own, *runs[turns:]]


def hand_out(jobs: Sequence[WaitingJob], free: Mapping[int, float]) -> dict[Job, tuple[float, float]]:
    """As claims do: whichever machine is free takes the first of those that may begin on it by then."""
    machines = [(moment, machine) for machine, moment in free.items()]
    heapify(machines)
    left, starts = list(jobs), {}
    while left and machines:
        moment, machine = heappop(machines)
        own = [row for row in left if getattr(row.job, "only_on_id", None) in (None, machine)]
        taken = next((row for row in own if row.earliest <= moment), None)
        if taken is not None:
            left.remove(taken)
            starts[taken.job] = moment, moment + taken.length
            heappush(machines, (moment + taken.length, machine))
        elif own:
            # The machine waits until one may begin.
            heappush(machines, (min(row.earliest for row in own), machine))
    return starts


def is_awaited(job: Job) -> bool:
    """Whether somebody waits for it; of a run the query says so."""
    return bool(getattr(job, "is_awaited", False))


def project_of(job: Job) -> Project:
    return job.case.project if isinstance(job, Run) else job.project


def pool_of(job: Job) -> Pool:
    return job.pool if isinstance(job, Run) else job.head_configuration.pool


def seconds_until_due(job: Job, now: datetime) -> float:
    """Until it may begin: at its own time, and after the quiet hours of its project."""
    project = project_of(job)
    due = (job.not_before if isinstance(job, Run) else None) or now
    if project.quiet_from and project.quiet_until and project.quiet_from <= now:
        due = max(due, project.quiet_until)
    return max(0.0, (due - now).total_seconds())
