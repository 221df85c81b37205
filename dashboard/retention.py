"""Logs, telemetry, profiles and documents of runs are dropped with age; points and verdicts stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from dashboard.models import Document, Regression, Run, RunLog, Telemetry

# A transaction takes so many runs: nobody waits for its locks, and it needs little memory.
BATCH = 100


@dataclass(frozen=True)
class Part:
    """What a run loses after `days`, 0 for never; `thinned` is what is left of its document then."""

    name: str
    days: int
    thinned: int | None
    drop: Callable[[list[int]], None]


def kept_parts() -> tuple[Part, ...]:
    """What can be dropped, as the settings say."""
    return (
        Part("logs", settings.PACELINE_KEEP_LOGS_DAYS, None, _drop_logs),
        Part("telemetry", settings.PACELINE_KEEP_TELEMETRY_DAYS, Document.Thinned.TELEMETRY, _drop_telemetry),
        Part("profiles", settings.PACELINE_KEEP_PROFILES_DAYS, Document.Thinned.PROFILE, _drop_profiles),
        Part("documents", settings.PACELINE_KEEP_DOCUMENTS_DAYS, None, _drop_documents),
    )


def prune_runs(*, seconds: float, dry: bool = False) -> dict[str, int]:
    """Drop what is older than it is kept, for about so many seconds; of how many runs each part was dropped.

    What is left is dropped the next time. `dry`: count only.
    """
    end = monotonic() + seconds
    return {part.name: _prune_part(part, end, dry) for part in kept_parts() if part.days}


def _prune_part(part: Part, end: float, dry: bool) -> int:
    if dry:
        return _prunable_runs(part).count()
    dropped = 0
    while monotonic() < end:
        with transaction.atomic():
            keys = list(_prunable_runs(part).order_by("finished_at").values_list("pk", flat=True)[:BATCH])
            part.drop(keys)
        dropped += len(keys)
        if len(keys) < BATCH:
            break
    return dropped


def _prunable_runs(part: Part) -> QuerySet[Run]:
    """Those that ended long enough ago and have the part; no newest one of a case, none of a regression."""
    newer = Run.objects.filter(
        configuration=OuterRef("configuration"), state=Run.State.DONE, finished_at__gt=OuterRef("finished_at")
    )
    blamed = Regression.objects.filter(
        Q(first_bad=OuterRef("commit")) | Q(last_good=OuterRef("commit")), withdrawn_at=None
    )
    ended = Run.objects.filter(
        Exists(newer) | ~Q(state=Run.State.DONE),
        ~Exists(blamed),
        state__in=Run.TERMINAL,
        finished_at__lt=Now() - timedelta(days=part.days),
    )
    if part.name == "logs":
        return ended.filter(log__isnull=False)
    documents = ended.filter(document__isnull=False)
    return documents if part.thinned is None else documents.filter(document__thinned__lt=part.thinned)


def _drop_logs(runs: Iterable[int]) -> None:
    RunLog.objects.filter(run__in=runs).delete()


def _drop_telemetry(runs: list[int]) -> None:
    Telemetry.objects.filter(run__in=runs).delete()
    _empty_members({"telemetry": "[]"}, Document.Thinned.TELEMETRY, runs)


def _drop_profiles(runs: list[int]) -> None:
    Telemetry.objects.filter(run__in=runs).delete()
    _empty_members({"telemetry": "[]", "profile": "null"}, Document.Thinned.PROFILE, runs)


def _drop_documents(runs: list[int]) -> None:
    Telemetry.objects.filter(run__in=runs).delete()
    Document.objects.filter(run__in=runs).delete()


def _empty_members(members: dict[str, str], thinned: int, runs: list[int]) -> None:
    """Replace members of documents in the database itself: a document may have megabytes."""
    body = "body"
    parameters: list[Any] = []
    for name, value in members.items():
        body = f"jsonb_set({body}, %s, %s::jsonb)"
        parameters += [[name], value]
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE dashboard_document SET body = {body}, thinned = %s WHERE run_id = ANY(%s)",  # noqa: S608
            [*parameters, thinned, runs],
        )
