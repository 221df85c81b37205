"""The queue: what is measured, what waits, and when each is expected to begin and to end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import heapify, heappop, heappush

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.access import visitor_of
from dashboard.models import Run
from dashboard.querysets import queue


@dataclass(frozen=True, slots=True)
class ExpectedRun:
    """Seconds from now: `starts` and `ends`; None where no machine takes it, or none ever measured its case.

    `takes`: what its newest run took; None where the case never ran, and the usual time of the pool is used.
    """

    run: Run
    starts: float | None
    ends: float | None
    takes: float | None


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """`earliest`: seconds from now before which it isn't claimed; `length`: how long it will take."""

    run: Run
    earliest: float
    length: float


@require_safe
def queue_page(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    visible = visitor_of(request).visible_projects()
    held = queue.held_runs()
    waiting = queue.waiting_runs()
    took = queue.seconds_by_configuration({run.configuration_id for run in (*held, *waiting)})
    unknown = {run.pool.pk for run in (*held, *waiting) if run.configuration_id not in took}
    usual = queue.usual_by_pool(unknown) if unknown else {}
    machines = queue.seconds_of_experiments(now)
    expected = expect_runs(held, waiting, took, usual, machines, now)
    keys = set(visible.values_list("pk", flat=True))
    shown = [row for row in expected if row.run.case.project_id in keys]
    listed = sum(row.run.state == "requested" for row in shown)
    # Where the list isn't full, all that wait are in it.
    is_full = len(waiting) == queue.MOST_WAITING
    context = {
        "rows": shown,
        "hidden": len(expected) - len(shown),
        "more": max(0, queue.count_waiting(visible) - listed) if is_full else 0,
        "experiments": [left for pool in machines.values() for left in pool.values() if left is not None],
        "waiting_experiments": queue.count_waiting_experiments(),
        "last": max((row.ends for row in expected if row.ends is not None), default=None),
    }
    return render(request, "queue.html", context)


def expect_runs(
    held: Sequence[Run],
    waiting: Sequence[Run],
    took: Mapping[int, float],
    usual: Mapping[int, float],
    machines: Mapping[int, Mapping[int, float | None]],
    now: datetime,
) -> list[ExpectedRun]:
    """What is measured, then what waits in the order in which it will begin; last what no machine takes.

    `took`: by configuration; `usual`: by pool, of a case that never ran. `machines`: by pool, of each that
    takes work, the seconds that its experiment may still take, or None.
    """
    free = {
        pool: {machine: left or 0.0 for machine, left in experiments.items()}
        for pool, experiments in machines.items()
    }
    rows = []
    for run in held:
        takes = took.get(run.configuration_id)
        length = takes if takes is not None else usual.get(run.pool.pk)
        left = None
        if length is not None and run.claimed_at is not None:
            left = max(0.0, length - (now - run.claimed_at).total_seconds())
            # One that is paused ends what it has, and takes nothing more.
            if run.machine_id in free.get(run.pool.pk, {}):
                free[run.pool.pk][run.machine_id] = left
        rows.append(ExpectedRun(run, 0.0, left, takes))
    starts = expect_starts(waiting, took, usual, free, now)
    for run in sorted(waiting, key=lambda run: starts.get(run.pk, (math.inf, 0.0))[0]):
        begins, ends = starts.get(run.pk, (None, None))
        rows.append(ExpectedRun(run, begins, ends, took.get(run.configuration_id)))
    return rows


def expect_starts(
    waiting: Sequence[Run],
    took: Mapping[int, float],
    usual: Mapping[int, float],
    free: Mapping[int, Mapping[int, float]],
    now: datetime,
) -> dict[int, tuple[float, float]]:
    """By run, when it begins and ends; without those that no machine takes.

    `free`: by pool, in how many seconds each machine is free.
    """
    by_pool: dict[int, list[WaitingRun]] = {}
    for run in waiting:
        length = took.get(run.configuration_id, usual.get(run.pool.pk))
        if free.get(run.pool.pk) and length is not None:
            by_pool.setdefault(run.pool.pk, []).append(WaitingRun(run, seconds_until_due(run, now), length))
    starts = {}
    for pool, runs in by_pool.items():
        starts.update(hand_out(runs, free[pool]))
    return starts


def hand_out(runs: Sequence[WaitingRun], free: Mapping[int, float]) -> dict[int, tuple[float, float]]:
    """As claims do: whichever machine is free takes the first run of those that may begin on it by then."""
    machines = [(moment, machine) for machine, moment in free.items()]
    heapify(machines)
    left, starts = list(runs), {}
    while left and machines:
        moment, machine = heappop(machines)
        own = [run for run in left if run.run.only_on_id in (None, machine)]
        taken = next((run for run in own if run.earliest <= moment), None)
        if taken is not None:
            left.remove(taken)
            starts[taken.run.pk] = moment, moment + taken.length
            heappush(machines, (moment + taken.length, machine))
        elif own:
            # The machine waits until one may begin.
            heappush(machines, (min(run.earliest for run in own), machine))
    return starts


def seconds_until_due(run: Run, now: datetime) -> float:
    """Until it may begin: at its own time, and after the quiet hours of its project."""
    due, project = run.not_before or now, run.case.project
    if project.quiet_from and project.quiet_until and project.quiet_from <= now:
        due = max(due, project.quiet_until)
    return max(0.0, (due - now).total_seconds())
