"""Logs, telemetry, profiles and documents of runs are dropped with age; points and verdicts stay."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Exists, F, Func, JSONField, OuterRef, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast, Now

from dashboard.models import Document, ForgeDelivery, Regression, Run, RunLog, Telemetry, Throttle
from dashboard.throttling.attempts import FORGOTTEN_AFTER_SECONDS

# A transaction takes so many runs: nobody waits for its locks, and it needs little memory.
BATCH = 100
# How long a forge's request isn't taken a second time.
KEEP_DELIVERIES = timedelta(days=400)


@dataclass(frozen=True)
class Part:
    """What a run loses after `days`, 0 for never; `present` are the runs that still have it."""

    name: str
    days: int
    present: Q
    drop: Callable[[list[int]], None]


def kept_parts() -> tuple[Part, ...]:
    """What can be dropped, as the settings say."""
    document = Q(document__isnull=False)
    return (
        Part("logs", settings.PACELINE_KEEP_LOGS_DAYS, Q(log__isnull=False), _drop_logs),
        Part(
            "telemetry",
            settings.PACELINE_KEEP_TELEMETRY_DAYS,
            document & Q(document__telemetry_dropped=False),
            _drop_telemetry,
        ),
        Part(
            "profiles",
            settings.PACELINE_KEEP_PROFILES_DAYS,
            document & Q(document__profile_dropped=False),
            _drop_profiles,
        ),
        Part("documents", settings.PACELINE_KEEP_DOCUMENTS_DAYS, document, _drop_documents),
    )


def prune_runs(*, seconds: float, dry: bool = False) -> dict[str, int]:
    """Drop what is older than it is kept, for about so many seconds; of how many runs each part was dropped.

    What is left is dropped the next time. `dry`: count only.
    """
    end = monotonic() + seconds
    return {part.name: _prune_part(part, end, dry) for part in kept_parts() if part.days}


def drop_old_deliveries() -> None:
    """Forget which requests of forges were received long ago."""
    ForgeDelivery.objects.filter(received_at__lt=Now() - KEEP_DELIVERIES).delete()


def drop_expired_sessions() -> None:
    """Sessions that are over, and counts of visitors that say nothing any more."""
    Session.objects.filter(expire_date__lt=Now()).delete()
    there = Session.objects.filter(session_key=OuterRef("session_key"))
    UserSession.objects.filter(~Exists(there)).delete()
    old = Now() - timedelta(seconds=FORGOTTEN_AFTER_SECONDS)
    Throttle.objects.filter(free_at__lt=Now(), started_at__lt=old).delete()


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
    return Run.objects.filter(
        part.present,
        Exists(newer) | ~Q(state=Run.State.DONE),
        ~Exists(blamed),
        state__in=Run.TERMINAL,
        finished_at__lt=Now() - timedelta(days=part.days),
    )


def _drop_logs(runs: Iterable[int]) -> None:
    RunLog.objects.filter(run__in=runs).delete()


def _drop_telemetry(runs: list[int]) -> None:
    Telemetry.objects.filter(run__in=runs).delete()
    _replace_member("telemetry", [], runs)
    Document.objects.filter(run__in=runs).update(telemetry_dropped=True)


def _drop_profiles(runs: list[int]) -> None:
    _replace_member("profile", None, runs)
    Document.objects.filter(run__in=runs).update(profile_dropped=True)


def _drop_documents(runs: list[int]) -> None:
    Telemetry.objects.filter(run__in=runs).delete()
    Document.objects.filter(run__in=runs).delete()


def _replace_member(name: str, value: object, runs: list[int]) -> None:
    """Replace a member of documents in the database itself: a document may have megabytes."""
    path = Value([name], ArrayField(TextField()))
    # As text: of a Value that is None, Django makes an SQL NULL and not JSON's.
    replaced = Cast(Value(json.dumps(value)), JSONField())
    body = Func(F("body"), path, replaced, function="jsonb_set", output_field=JSONField())
    Document.objects.filter(run__in=runs).update(body=body)
