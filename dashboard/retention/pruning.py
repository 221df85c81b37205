"""Drops what is older than it is kept: batch by batch, each in one transaction under its project's lock.

Judging opens a regression under the same lock. So what a batch drops belongs to no regression when it goes,
whatever was opened since the runs were listed; and what is cut off between two batches is gone on with the
next time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from datetime import timedelta
from time import monotonic

from django.db import transaction
from django.db.models import F, QuerySet, Value
from django.db.models.functions import Now
from django.utils import timezone

from dashboard.models import DroppedDetail, Project, Run
from dashboard.retention.detail_kinds import KINDS, DetailKind, rewrite_documents
from dashboard.retention.kept_days import kept_days
from dashboard.retention.protected_runs import protected_runs

# A transaction takes so many runs: nobody waits long for its locks, and it needs little memory.
BATCH = 100


def prune_runs(*, seconds: float, project: Project | None = None) -> dict[str, int]:
    """Drop what is older than it is kept, for about so many seconds; of how many runs each kind was dropped.

    Kinds that every project keeps for ever are missing. What is left is dropped the next time. `project`:
    this one alone.
    """
    end = monotonic() + seconds
    projects = [project] if project else Project.objects.filter(removed_slug="").order_by("pk")
    dropped: dict[str, int] = {}
    # In turns: the oldest detail of one project may be more than fits.
    waiting: deque[tuple[str, Iterator[int]]] = deque()
    for row in projects:
        for kind in dropped_kinds(row):
            dropped.setdefault(kind.name, 0)
            waiting.append((kind.name, drop_in_batches(row, kind)))
    while waiting and monotonic() < end:
        name, batches = waiting.popleft()
        for number in batches:
            dropped[name] += number
            waiting.append((name, batches))
            break
    rewrite_documents(end)
    return dropped


def dropped_kinds(project: Project) -> list[DetailKind]:
    """What this project doesn't keep for ever."""
    days = {row.kind: row.days for row in kept_days(project)}
    return [kind for kind in KINDS if days[kind.name]]


def old_runs(project: Project, kind: DetailKind, among: Collection[int] | None = None) -> QuerySet[Run]:
    """Those that ended longer ago than the kind is kept, and still have it; none of what is kept for ever.

    `among`: of these keys alone.
    """
    (days,) = (row.days for row in kept_days(project) if row.kind == kind.name)
    if not days:
        return Run.objects.none()
    ended = Run.objects.filter(
        configuration__case__project=project,
        state__in=Run.TERMINAL,
        finished_at__lt=Now() - Value(timedelta(days=days)),
    )
    if among is None:
        return kind.having(project, ended, None)
    configurations = Run.objects.filter(pk__in=among).order_by().values_list("configuration", flat=True)
    return kind.having(project, ended.filter(pk__in=among), set(configurations))


def drop_in_batches(project: Project, kind: DetailKind) -> Iterator[int]:
    """Of how many runs each batch dropped it."""
    protected = protected_runs(project)
    keys = old_runs(project, kind).order_by("finished_at", "pk").values_list("pk", flat=True)
    due = [key for key in keys if key not in protected]
    for start in range(0, len(due), BATCH):
        yield drop_batch(project, kind, due[start : start + BATCH])


def drop_batch(project: Project, kind: DetailKind, keys: list[int]) -> int:
    """Drop a kind of detail of those of these runs that may still lose it; of how many that were."""
    # Before the lock: sizes of documents are found by reading them.
    measured = kind.measure(project, keys)
    with transaction.atomic():
        # Not FOR UPDATE: that holds up every row that is inserted with this project as its key.
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        protected = protected_runs(locked, frozenset(keys))
        there = old_runs(locked, kind, keys).values_list("pk", flat=True)
        due = [key for key in there if key not in protected]
        if not due:
            return 0
        rows, size = measured if len(due) == len(keys) else kind.measure(locked, due)
        kind.drop(locked, due)
        note_dropped(locked, kind, len(due), rows, size)
    return len(due)


def note_dropped(project: Project, kind: DetailKind, runs: int, rows: int, size: int) -> None:
    """Add it to what was dropped today. The caller holds the project's lock."""
    today, _ = DroppedDetail.objects.get_or_create(project=project, kind=kind.name, day=timezone.now().date())
    DroppedDetail.objects.filter(pk=today.pk).update(
        runs=F("runs") + runs, entries=F("entries") + rows, size=F("size") + size
    )
