"""Runs as pages read them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import (
    Case,
    Count,
    Exists,
    F,
    Func,
    JSONField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
    When,
)
from django.db.models.functions import Cast, Coalesce, Now, Right

from dashboard.models import Document, Machine, Project, Run, RunLog, Telemetry, Trigger
from dashboard.models.measured_json import MeasuredJsonDecoder
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.querysets.deferred_joins import MACHINE_DETAILS, PROJECT_DETAILS, compose_details, is_among
from dashboard.repositories import DETACHED

RECENT_FAILURES = timedelta(days=7)
# A machine says that it lives every ten seconds.
ALIVE_WITHIN = timedelta(seconds=60)
LOG_TAIL = 24_000


def runs_with_related() -> QuerySet[Run]:
    """With all that a line about a run names; newest first."""
    return (
        Run.objects.select_related("commit", "configuration__case__project", "configuration__pool", "machine")
        .defer(
            "fingerprint",
            *(f"machine__{name}" for name in MACHINE_DETAILS),
            *(f"configuration__case__project__{name}" for name in PROJECT_DETAILS),
        )
        .order_by("-requested_at", "-pk")
    )


RUNS_OF_KEYS = compose_details(runs_with_related)


def project_runs(project: Project) -> QuerySet[Run]:
    """Newest first."""
    return Run.objects.filter(project=project).order_by("-requested_at", "-pk")


def trigger_runs(trigger: Trigger) -> QuerySet[Run]:
    """What a trigger asked for: what still goes on first, then the newest."""
    ended = Case(When(state__in=Run.TERMINAL, then=1), default=0)
    return runs_with_related().filter(trigger=trigger).order_by(ended, "-requested_at", "-pk")


def count_trigger_runs(trigger: Trigger) -> tuple[int, int]:
    """(how many of a trigger's runs have ended, how many it has)."""
    ended = Count("pk", filter=Q(state__in=Run.TERMINAL))
    counts = Run.objects.filter(trigger=trigger).aggregate(ended=ended, all=Count("pk"))
    return counts["ended"], counts["all"]


def active_runs(projects: QuerySet[Project]) -> QuerySet[Run]:
    """Those that are being worked on, then those that wait."""
    order = (F("claimed_at").desc(nulls_last=True), "-priority", "requested_at", "pk")
    rows = runs_with_related().filter(configuration__case__project__in=projects)
    return rows.exclude(state__in=Run.TERMINAL).order_by(*order)


class RunsSummary(NamedTuple):
    """`more_active`: how many are active beside those listed. `remeasuring`: how many of all that are active
    measure a disturbed one again."""

    listed: list[Run]
    more_active: int
    remeasuring: int


def summarize_runs(project: Project, held: int, waiting: int, ended: int) -> RunsSummary:
    """What is measured now, what comes next, then the newest that ended; of each as many as asked for.

    Bounded reads: one query sorted by state would read every run that the project ever had.
    """
    rows = _SUMMARY.read_rows(held, waiting, ended, project=project.pk)
    shown = sorted(rows, key=_summary_order)
    under_way = [run for run in shown if run.state not in Run.TERMINAL]
    active, remeasuring = (shown[0].active_count, shown[0].remeasuring_count) if shown else (0, 0)
    return RunsSummary(shown, active - len(under_way), remeasuring)


def _build_summary(held: int, waiting: int, ended: int) -> QuerySet[Run]:
    """Each with `active_count`, how many are active, and of these `remeasuring_count`."""
    project = Parameter("project")
    own = Run.objects.filter(project=project).order_by("-requested_at", "-pk")
    active = active_runs(Project.objects.filter(pk=project))
    first, *others = (
        active.filter(state__in=Run.HELD)[:held],
        active.filter(state=Run.State.REQUESTED)[:waiting],
        own.filter(state__in=Run.TERMINAL)[:ended],
    )
    counted = active.order_by().values("configuration__case__project").annotate(number=Count("pk"))
    again = counted.filter(Run.IS_REMEASURING)
    rows = runs_with_related().filter(is_among(first.union(*others, all=True)))
    return rows.annotate(
        active_count=Coalesce(Subquery(counted.values("number")), 0),
        remeasuring_count=Coalesce(Subquery(again.values("number")), 0),
    )


_SUMMARY = CompiledQuery(_build_summary)


def _summary_order(run: Run) -> tuple[int, int, float, int]:
    """What is measured, the newest claim first; what waits, what comes next first; the newest that ended."""
    if run.state in Run.HELD:
        return 0, 0, -(run.claimed_at.timestamp() if run.claimed_at else 0.0), run.pk
    if run.state == Run.State.REQUESTED:
        return 1, -run.priority, run.requested_at.timestamp(), run.pk
    return 2, 0, -run.requested_at.timestamp(), -run.pk


def recent_failures(now: datetime, projects: QuerySet[Project]) -> QuerySet[Run]:
    """Failures of the last days that nobody has measured again since, and no later commit repaired.

    On no branch, as after a force-push, nothing is watched, and nobody has to repair it.
    Of commits that fail one after the other on a branch the newest: they need somebody once.
    """
    same_case = {
        f"configuration__{name}": OuterRef(f"configuration__{name}") for name in ("case", "pool", "quick")
    }
    later = Run.objects.filter(commit=OuterRef("commit"), pk__gt=OuterRef("pk"), **same_case)
    recent = {"state": Run.State.FAILED, "finished_at__gt": now - RECENT_FAILURES}
    newer = Run.objects.filter(
        Q(state=Run.State.DONE) | Q(**recent),
        commit__branch=OuterRef("commit__branch"),
        commit__position__gt=OuterRef("commit__position"),
        **same_case,
    )
    rows = runs_with_related().filter(configuration__case__project__in=projects)
    return rows.filter(~Exists(later), ~Exists(newer), **recent).exclude(commit__branch=DETACHED)


def next_measurement(run: Run) -> Run | None:
    """The run of the same configuration at the same commit that was asked for after this one."""
    same = Run.objects.filter(commit=run.commit_id, configuration=run.configuration_id, pk__gt=run.pk)
    return same.exclude(origin=Run.Origin.SENTINEL).order_by("pk").first()


def find_for_page(pk: int) -> Run | None:
    """With all that its own page names; `pool_lives`: whether a machine of its pool lives and takes work."""
    return next(iter(_FOR_PAGE.read_rows(pk=pk)), None)


def _build_for_page() -> QuerySet[Run]:
    alive = Machine.objects.filter(
        pool=OuterRef("configuration__pool"),
        seen_at__gte=Now() - ALIVE_WITHIN,
        state=Machine.State.ACTIVE,
    )
    rows = Run.objects.filter(pk=Parameter("pk")).select_related(
        *("commit", "configuration__case__project", "configuration__pool", "machine"),
        *("trigger__requested_by", "posted__posted_by", "posted__token"),
    )
    return rows.annotate(pool_lives=Exists(alive))


def read_log_tail(run: Run) -> str:
    """The end of what the run printed so far; empty where it printed nothing."""
    return next(iter(_LOG_TAIL.read_rows(run=run.pk)), "")


def _build_log_tail() -> QuerySet[Any]:
    rows = RunLog.objects.filter(run=Parameter("run")).annotate(tail=Right("text", LOG_TAIL))
    return rows.values_list("tail", flat=True)


_FOR_PAGE = CompiledQuery(_build_for_page)
_LOG_TAIL: CompiledQuery[Any] = CompiledQuery(_build_log_tail)


class JsonWithoutKey(Func):
    """`json - key`: leaves the large part of a document in the database."""

    arity = 2
    template = "(%(expressions)s)"
    arg_joiner = " - "
    output_field = JSONField(decoder=MeasuredJsonDecoder)


def document_without_telemetry(run: Run) -> dict[str, Any] | None:
    """The run's document without its telemetry, which is read by channel; None where it has none.

    Beside its own members it has `telemetry_dropped` and `profile_dropped`.
    """
    found = next(iter(_LIGHT_DOCUMENT.read_rows(run=run.pk)), None)
    return {**found[0], **dict(zip(_DROPPED, found[1:], strict=True))} if found else None


_DROPPED = ("telemetry_dropped", "profile_dropped")


def _build_light_document() -> QuerySet[Any]:
    light = JsonWithoutKey(F("body"), Value("telemetry"))
    return Document.objects.filter(run=Parameter("run")).annotate(light=light).values_list("light", *_DROPPED)


_LIGHT_DOCUMENT: CompiledQuery[Any] = CompiledQuery(_build_light_document)


def document_text(run: Run) -> str | None:
    """The run's document as Postgres writes it; None where it has none."""
    rows = Document.objects.filter(run=run).annotate(text=Cast("body", TextField()))
    return rows.values_list("text", flat=True).first()


def telemetry_beside(run: Run, repetition: int, most: int) -> list[Telemetry]:
    """Of the other repetitions, the first `most` of them."""
    rows = Telemetry.objects.filter(run=run, repetition__lte=most).exclude(repetition=repetition)
    return list(rows.order_by("repetition", "channel", "device"))


def repetition_telemetry(run: Run, repetition: int) -> list[Telemetry]:
    return _TELEMETRY.read_rows(run=run.pk, repetition=repetition)


_TELEMETRY = CompiledQuery(
    lambda: Telemetry.objects.filter(run=Parameter("run"), repetition=Parameter("repetition")).order_by(
        "channel", "device"
    )
)
