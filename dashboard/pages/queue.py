"""The queue: what is measured, what waits, and when each is expected to begin and to end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.access import visitor_of
from dashboard.access.rules import is_offered
from dashboard.models import Experiment, Project, Run
from dashboard.pages.queue_forecast import ExpectedJob, Job, JobLengths, expect_jobs
from dashboard.querysets import queue
from dashboard.querysets.experiment_order import LONG_WAIT

# So many that wait are seen at once, and the others by one click; fewer than LEAST_FOLDED aren't worth it.
NEXT_WAITING, LEAST_FOLDED = 12, 5


@require_safe
def queue_page(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    visible = visitor_of(request).visible_projects()
    held: list[Job] = [*queue.held_runs(), *queue.held_experiments()]
    runs, experiments = queue.waiting_runs(), queue.waiting_experiments()
    jobs: list[Job] = [*held, *runs, *experiments]
    took = queue.seconds_by_configuration({job.configuration_id for job in jobs if isinstance(job, Run)})
    unknown = {job.pool.pk for job in jobs if isinstance(job, Run) and job.configuration_id not in took}
    measures = any(isinstance(job, Experiment) for job in jobs)
    lengths = JobLengths(
        took,
        queue.usual_by_pool(unknown) if unknown else {},
        queue.usual_of_experiments() if measures else {},
    )
    begun = queue.begun_by_pool(longest_by_pool(experiments, now))
    expected = expect_jobs(held, [*runs, *experiments], lengths, queue.working_machines(now), now, begun)
    keys = set(visible.values_list("pk", flat=True))
    shown = [row for row in expected if row.project.pk in keys]
    # Where a list isn't full, all that wait are in it.
    is_full = queue.MOST_WAITING in (len(runs), len(experiments))
    listed = sum(row.job.state == "requested" for row in shown)
    context = {
        "rows": shown,
        **fold_waiting(shown),
        "hidden": len(expected) - len(shown),
        "more": max(0, queue.count_waiting(visible) - listed) if is_full else 0,
        "has_experiments": any(row.experiment for row in shown),
        "cancellable": cancellable_projects(request, shown, counted=is_full),
        "last": max((row.ends for row in expected if row.ends is not None), default=None),
    }
    return render(request, "queue.html", context)


def fold_waiting(rows: list[ExpectedJob]) -> dict[str, object]:
    """`next_rows`: what is measured and what begins next; `later_rows` begin after that, the first of them in
    `later_starts` seconds where that is known."""
    end = sum(row.job.state != Run.State.REQUESTED for row in rows) + NEXT_WAITING
    end = end if len(rows) - end >= LEAST_FOLDED else len(rows)
    later = rows[end:]
    return {
        "next_rows": rows[:end],
        "later_rows": later,
        "later_starts": later[0].starts if later else None,
    }


def cancellable_projects(
    request: HttpRequest, shown: Iterable[ExpectedJob], *, counted: bool
) -> list[tuple[Project, int]]:
    """The projects whose waiting runs the visitor may cancel, each with how many wait.

    `counted`: more may wait than are shown.
    """
    visitor = visitor_of(request)
    waiting = [row.project for row in shown if row.run and row.job.state == Run.State.REQUESTED]
    projects = {project.pk: project for project in waiting if is_offered(visitor, "waiting-cancel", project)}
    numbers: Mapping[int, int] = Counter(project.pk for project in waiting)
    if counted and projects:
        numbers = queue.count_waiting_runs(projects)
    found = [(project, numbers[key]) for key, project in projects.items() if key in numbers]
    return sorted(found, key=lambda pair: pair[0].slug)


def longest_by_pool(experiments: Iterable[Experiment], now: datetime) -> dict[int, datetime]:
    """Since when each pool has had one waiting; without those whose ones all came within LONG_WAIT, of which
    none waits for a turn."""
    found: dict[int, datetime] = {}
    for row in experiments:
        if row.requested_at <= now - LONG_WAIT:
            pool = row.head_configuration.pool_id
            found[pool] = min(row.requested_at, found.get(pool, now))
    return found
