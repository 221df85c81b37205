"""Runs as pages read them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, F, Func, JSONField, OuterRef, QuerySet, Value
from django.db.models.functions import Now, Right

from dashboard.models import Document, Machine, Project, Run, RunLog, Telemetry

FAILED_LATELY = timedelta(days=7)
# A machine says that it lives every ten seconds.
SEEN_LATELY = timedelta(seconds=60)
LOG_TAIL = 24_000


def listed() -> QuerySet[Run]:
    """With all that a line about a run names; newest first."""
    return (
        Run.objects.select_related("commit", "case__project", "machine", "pool")
        .defer("fingerprint", "case__project__manifest")
        .order_by("-requested_at", "-pk")
    )


def of_project(project: Project) -> QuerySet[Run]:
    return listed().filter(case__project=project)


def active() -> QuerySet[Run]:
    """Those that are being worked on, then those that wait."""
    order = (F("claimed_at").desc(nulls_last=True), "-priority", "requested_at", "pk")
    return listed().exclude(state__in=Run.TERMINAL).order_by(*order)


def summary(project: Project, held: int, waiting: int, ended: int) -> tuple[list[Run], int]:
    """(runs, how many more are active): what is measured now, what comes next, then the newest that ended;
    of each as many as asked for.

    Bounded reads: one query sorted by state would read every run that the project ever had.
    """
    mine = active().filter(case__project=project)
    now = [*mine.filter(state__in=Run.HELD)[:held], *mine.filter(state=Run.State.REQUESTED)[:waiting]]
    past = of_project(project).filter(state__in=Run.TERMINAL)[:ended]
    return [*now, *past], mine.count() - len(now)


def failed_lately(now: datetime) -> QuerySet[Run]:
    """Failures of the last days that nobody has measured again since."""
    later = Run.objects.filter(
        commit=OuterRef("commit"),
        case=OuterRef("case"),
        pool=OuterRef("pool"),
        quick=OuterRef("quick"),
        pk__gt=OuterRef("pk"),
    )
    return listed().filter(~Exists(later), state=Run.State.FAILED, finished_at__gt=now - FAILED_LATELY)


def whole() -> QuerySet[Run]:
    """With all that a run's own page names, and whether a machine of its pool lives."""
    alive = Machine.objects.filter(pool=OuterRef("pool"), seen_at__gte=Now() - SEEN_LATELY)
    found = Run.objects.select_related("commit", "case__project", "machine", "pool", "trigger__requested_by")
    return found.annotate(pool_lives=Exists(alive))


def log_tail(run: Run) -> str:
    """The end of what the run printed so far; empty where it printed nothing."""
    found = RunLog.objects.filter(run=run).annotate(tail=Right("text", LOG_TAIL))
    return found.values_list("tail", flat=True).first() or ""


class Without(Func):
    """`json - key`: leaves the large part of a document in the database."""

    arity = 2
    template = "(%(expressions)s)"
    arg_joiner = " - "
    output_field = JSONField()


def document(run: Run) -> dict[str, Any] | None:
    """The run's document without its telemetry, which is read by channel; None where it has none."""
    found = Document.objects.filter(run=run).annotate(light=Without(F("body"), Value("telemetry")))
    body: dict[str, Any] | None = found.values_list("light", flat=True).first()
    return body


def telemetry(run: Run, repetition: int) -> list[Telemetry]:
    return list(Telemetry.objects.filter(run=run, repetition=repetition).order_by("channel", "device"))
