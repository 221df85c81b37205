"""The queue: what is measured, what waits, and when each is expected to begin and to end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import heapify, heappop, heappush
from statistics import median

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


@require_safe
def queue_page(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    visible = visitor_of(request).visible_projects()
    held = queue.held_runs()
    waiting = queue.waiting_runs()
    took = queue.seconds_by_configuration({run.configuration_id for run in (*held, *waiting)})
    machines = queue.seconds_of_experiments(now)
    expected = expect_runs(held, waiting, took, machines, now)
    keys = set(visible.values_list("pk", flat=True))
    shown = [row for row in expected if row.run.case.project_id in keys]
    listed = sum(row.run.state == "requested" for row in shown)
    # Where the list isn't full, all that wait are in it.
    is_full = len(waiting) == queue.MOST_WAITING
    context = {
        "rows": shown,
        "hidden": len(expected) - len(shown),
        "more": max(0, queue.count_waiting(visible) - listed) if is_full else 0,
        "experiments": [left for pool in machines.values() for left in pool if left is not None],
        "last": max((row.ends for row in expected if row.ends is not None), default=None),
    }
    return render(request, "queue.html", context)


def expect_runs(
    held: Sequence[Run],
    waiting: Sequence[Run],
    took: Mapping[int, float],
    machines: Mapping[int, Sequence[float | None]],
    now: datetime,
) -> list[ExpectedRun]:
    """Each pool hands its next run to the machine that is free first, as claims do.

    `machines`: by pool, of each that takes work, the seconds that its experiment may still take, or None.
    """
    usual = usual_by_pool([*held, *waiting], took)
    free: dict[int, list[float]] = {}
    rows = []
    for run in held:
        pool, takes = run.pool.pk, took.get(run.configuration_id)
        length = takes if takes is not None else usual.get(pool)
        left = None
        if length is not None and run.claimed_at is not None:
            left = max(0.0, length - (now - run.claimed_at).total_seconds())
            free.setdefault(pool, []).append(left)
        rows.append(ExpectedRun(run, 0.0, left, takes))
    for pool, experiments in machines.items():
        busy = free.setdefault(pool, [])
        busy.extend(left for left in experiments if left is not None)
        busy.extend([0.0] * max(0, len(experiments) - len(busy)))
        heapify(busy)
    for run in waiting:
        pool, takes = run.pool.pk, took.get(run.configuration_id)
        length = takes if takes is not None else usual.get(pool)
        if not free.get(pool) or length is None or pool not in machines:
            rows.append(ExpectedRun(run, None, None, takes))
            continue
        earliest = (run.not_before - now).total_seconds() if run.not_before else 0.0
        starts = max(heappop(free[pool]), earliest)
        heappush(free[pool], starts + length)
        rows.append(ExpectedRun(run, starts, starts + length, takes))
    return rows


def usual_by_pool(runs: Sequence[Run], took: Mapping[int, float]) -> dict[int, float]:
    """The median of what the cases of each pool took that did run."""
    known: dict[int, list[float]] = {}
    for run in runs:
        if run.configuration_id in took:
            known.setdefault(run.pool.pk, []).append(took[run.configuration_id])
    return {pool: median(seconds) for pool, seconds in known.items()}
