"""Projects at a glance, their commits, and what asked for their runs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from dashboard.models import Case, Commit, Heartbeat, Machine, Project, Regression, Run, Trigger
from dashboard.querysets.regressions import OPEN

# A machine says that it lives every ten seconds.
SILENT = timedelta(minutes=2)
# One that nobody has missed for this long was taken away on purpose.
FORGOTTEN = timedelta(days=30)


def at_a_glance() -> QuerySet[Project]:
    """Each with its numbers of open regressions and active runs, and its newest commit and done run."""
    regressions = Regression.objects.filter(OPEN, project=OuterRef("pk"))
    active = Run.objects.filter(case__project=OuterRef("pk")).exclude(state__in=Run.TERMINAL)
    commit = Commit.objects.filter(project=OuterRef("pk"), branch=OuterRef("branch")).order_by("-position")
    done = Run.objects.filter(case__project=OuterRef("pk"), state=Run.State.DONE).order_by("-finished_at")
    return (
        Project.objects.defer("manifest", "hook_secret")
        .annotate(
            open_regressions=_counted(regressions, "project"),
            active_runs=_counted(active, "case__project"),
            newest_commit_id=Subquery(commit.values("pk")[:1]),
            measured_at=Subquery(done.values("finished_at")[:1]),
            measured_commit_id=Subquery(done.values("commit")[:1]),
        )
        .order_by("-open_regressions", "slug")
    )


def _counted(found: QuerySet[Regression] | QuerySet[Run], by: str) -> Coalesce:
    counted = found.order_by().values(by).annotate(found=Count("pk")).values("found")
    return Coalesce(Subquery(counted), 0)


def commits_by_id(wanted: Iterable[int | None]) -> dict[int, Commit]:
    return Commit.objects.in_bulk([pk for pk in wanted if pk is not None])


def commits(project: Project) -> QuerySet[Commit]:
    """Newest first, each with the numbers of its runs by how they stand."""
    ended = Q(runs__state__in=Run.TERMINAL)
    asked = ~Q(runs__origin=Run.Origin.SENTINEL)
    return (
        Commit.objects.filter(project=project, branch=project.branch)
        .annotate(
            done=Count("runs", filter=asked & Q(runs__state=Run.State.DONE)),
            failed=Count("runs", filter=asked & Q(runs__state=Run.State.FAILED)),
            active=Count("runs", filter=asked & ~ended & Q(runs__isnull=False)),
        )
        .order_by("-position")
    )


def cases(project: Project) -> QuerySet[Case]:
    return Case.objects.filter(project=project).order_by("benchmark", "key")


def benchmarks(project: Project) -> list[str]:
    """The benchmarks that the project has been asked to measure."""
    found = Case.objects.filter(project=project).order_by("benchmark")
    return list(found.values_list("benchmark", flat=True).distinct())


def triggers(project: Project) -> QuerySet[Trigger]:
    found = Trigger.objects.filter(project=project).select_related("requested_by")
    return found.annotate(run_count=Count("runs")).order_by("-received_at", "-pk")


def awaits_runs(project: Project) -> bool:
    """Has a trigger come in that isn't resolved yet? Its runs are about to appear."""
    return Trigger.objects.filter(project=project, state=Trigger.State.RECEIVED).exists()


def silent_machines(now: datetime) -> QuerySet[Machine]:
    seen = Machine.objects.filter(seen_at__lt=now - SILENT, seen_at__gt=now - FORGOTTEN)
    return seen.select_related("pool").order_by("-seen_at")


def silent_parts(now: datetime) -> QuerySet[Heartbeat]:
    """The scheduler and the service worker are parts too; without them nothing moves."""
    return Heartbeat.objects.filter(seen_at__lt=now - SILENT).order_by("name")


def waiting_in_vain(now: datetime) -> list[tuple[str, int]]:
    """(pool, number of waiting runs) of each pool that has no living machine: they would wait for ever."""
    alive = Machine.objects.filter(pool=OuterRef("pool"), seen_at__gte=now - SILENT)
    waiting = Run.objects.filter(~Exists(alive), state=Run.State.REQUESTED)
    counted = waiting.values("pool__name").annotate(found=Count("pk")).order_by("pool__name")
    return list(counted.values_list("pool__name", "found"))
