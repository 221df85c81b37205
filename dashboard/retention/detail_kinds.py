"""The kinds of detail that runs lose with age: which runs have it, how much it is, and how it goes."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from time import monotonic
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import connection, transaction
from django.db.models import Case, F, Func, JSONField, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Cast

from dashboard.models import Document, Project, Run, RunLog, Telemetry
from dashboard.policy.project_policy import project_policy
from dashboard.retention import thinned_points

# Documents are rewritten so many at a time: each may have megabytes.
REWRITTEN_AT_ONCE = 20

Measured = tuple[int, int]  # rows and bytes
Having = Callable[[Project, QuerySet[Run], Collection[int] | None], QuerySet[Run]]


@dataclass(frozen=True, slots=True)
class DetailKind:
    """`having`: of a project's runs of these configurations (None: of any) those that still have it.
    `measure`: its rows and bytes in these runs.

    `drop` is called within the project's lock, and so takes away what is quickly gone.
    """

    name: str
    having: Having
    measure: Callable[[Project, Collection[int]], Measured]
    drop: Callable[[Project, Collection[int]], None]


def _having_condition(condition: Q) -> Having:
    return lambda _project, runs, _configurations: runs.filter(condition)


def _having_points(
    project: Project, runs: QuerySet[Run], configurations: Collection[int] | None
) -> QuerySet[Run]:
    every = project_policy(project).points_every
    return thinned_points.thinnable_runs(project, runs, every, configurations)


def _measure_logs(_: Project, runs: Collection[int]) -> Measured:
    return _read_sizes("SELECT count(*), sum(pg_column_size(text)) FROM dashboard_runlog", runs)


def _measure_telemetry(_: Project, runs: Collection[int]) -> Measured:
    rows, size = _read_sizes(
        "SELECT count(*), sum(pg_column_size(channel.*)) FROM dashboard_telemetry channel", runs
    )
    return rows, size + _measure_member("telemetry", runs)[1]


def _measure_profiles(_: Project, runs: Collection[int]) -> Measured:
    return _measure_member("profile", runs)


def _measure_documents(_: Project, runs: Collection[int]) -> Measured:
    rows, size = _read_sizes("SELECT count(*), sum(pg_column_size(body)) FROM dashboard_document", runs)
    return rows, size + _read_sizes(
        "SELECT count(*), sum(pg_column_size(channel.*)) FROM dashboard_telemetry channel", runs
    )[1]


def _measure_points(project: Project, runs: Collection[int]) -> Measured:
    return thinned_points.measure_points(project, runs, project_policy(project).points_every)


def _measure_member(name: str, runs: Collection[int]) -> Measured:
    """Of a member of documents its part of what they take: they are compressed as a whole."""
    part = f"length((body -> '{name}')::text)::float / length(body::text)"
    return _read_sizes(
        f"SELECT count(*), sum(pg_column_size(body) * {part}) FROM dashboard_document",  # noqa: S608
        runs,
    )


def _read_sizes(statement: str, runs: Collection[int]) -> Measured:
    with connection.cursor() as cursor:
        cursor.execute(f"{statement} WHERE run_id = ANY(%s)", [list(runs)])
        rows, size = cursor.fetchone()
    return rows, round(size or 0)


def _drop_logs(_: Project, runs: Collection[int]) -> None:
    RunLog.objects.filter(run__in=runs).delete()


def _drop_telemetry(_: Project, runs: Collection[int]) -> None:
    Telemetry.objects.filter(run__in=runs).delete()
    Document.objects.filter(run__in=runs).update(telemetry_dropped=True, rewrite_due=True)


def _drop_profiles(_: Project, runs: Collection[int]) -> None:
    Document.objects.filter(run__in=runs).update(profile_dropped=True, rewrite_due=True)


def _drop_documents(_: Project, runs: Collection[int]) -> None:
    Telemetry.objects.filter(run__in=runs).delete()
    Document.objects.filter(run__in=runs).delete()


def _drop_points(project: Project, runs: Collection[int]) -> None:
    thinned_points.drop_points(project, runs, project_policy(project).points_every)


HAS_DOCUMENT = Q(document__isnull=False)
KINDS = (
    DetailKind("logs", _having_condition(Q(log__isnull=False)), _measure_logs, _drop_logs),
    DetailKind(
        "telemetry",
        _having_condition(HAS_DOCUMENT & Q(document__telemetry_dropped=False)),
        _measure_telemetry,
        _drop_telemetry,
    ),
    DetailKind(
        "profiles",
        _having_condition(HAS_DOCUMENT & Q(document__profile_dropped=False)),
        _measure_profiles,
        _drop_profiles,
    ),
    DetailKind("documents", _having_condition(HAS_DOCUMENT), _measure_documents, _drop_documents),
    DetailKind("points", _having_points, _measure_points, _drop_points),
)


def rewrite_documents(end: float) -> None:
    """Write anew, without it, the documents whose telemetry or profile was dropped; until `end`, at most.

    Outside of any lock but their own. What is left, or was cut off, is done the next time.
    """
    # As text: of a Value that is None, Django makes an SQL NULL and not JSON's.
    body: Any = F("body")
    for name, nothing in (("telemetry", []), ("profile", None)):
        emptied = Func(
            body,
            Value([name], ArrayField(TextField())),
            Cast(Value(json.dumps(nothing)), JSONField()),
            function="jsonb_set",
            output_field=JSONField(),
        )
        body = Case(When(**{f"{name}_dropped": True}, then=emptied), default=body)
    while monotonic() < end:
        with transaction.atomic():
            due = Document.objects.filter(rewrite_due=True).select_for_update(skip_locked=True)
            keys = list(due.order_by("run").values_list("pk", flat=True)[:REWRITTEN_AT_ONCE])
            Document.objects.filter(pk__in=keys).update(body=body, rewrite_due=False)
        if len(keys) < REWRITTEN_AT_ONCE:
            break
