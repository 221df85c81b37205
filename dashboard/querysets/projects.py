"""Projects at a glance, their commits, and what asked for their runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import BooleanField, Count, Exists, ExpressionWrapper, OuterRef, Q, QuerySet, Subquery
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce

from dashboard.models import (
    Case,
    Commit,
    Configuration,
    Heartbeat,
    Machine,
    Project,
    Regression,
    Run,
    Trigger,
)
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.querysets.deferred_joins import compose_details
from dashboard.querysets.regressions import IS_OPEN

# A machine says that it lives every ten seconds.
SILENT_AFTER = timedelta(minutes=2)
# Where results are missing further back, a range is asked for by hand.
LOOKED_AT = 40
SHOWN_REFUSALS = timedelta(days=1)
# One that nobody has missed for so long was taken away on purpose.
REMOVED_AFTER = timedelta(days=30)


# Made from an archive, and nothing was asked for here since: it stands as it stood where it came from, and
# nobody here has to do anything about that.
RESTING_COPY = (
    Q(imported_at__isnull=False)
    & ~Exists(Run.objects.filter(project=OuterRef("pk"), requested_at__gt=OuterRef("imported_at")))
    & ~Exists(Trigger.objects.filter(project=OuterRef("pk"), received_at__gt=OuterRef("imported_at")))
)


def projects_with_summary(visible: QuerySet[Project]) -> QuerySet[Project]:
    """Each with its numbers of open regressions and active runs, and its newest commit and done run."""
    regressions = Regression.objects.filter(IS_OPEN, project=OuterRef("pk"))
    active = Run.objects.filter(configuration__case__project=OuterRef("pk")).exclude(state__in=Run.TERMINAL)
    commit = Commit.objects.filter(project=OuterRef("pk"), branch=OuterRef("branch")).order_by("-position")
    return (
        visible.defer("manifest", "hook_secret")
        .annotate(
            is_resting_copy=ExpressionWrapper(RESTING_COPY, BooleanField()),
            open_regressions=_count_subquery(regressions, "project"),
            active_runs=_count_subquery(active, "configuration__case__project"),
            newest_commit_id=Subquery(commit.values("pk")[:1]),
            measured_at=_newest_run_value("finished_at"),
            measured_commit_id=_newest_run_value("commit"),
        )
        .order_by("-open_regressions", "slug")
    )


def _newest_run_value(column: str) -> Subquery:
    """Of the project's newest done run: one look into an index for each configuration, no walk over runs."""
    done = Run.objects.filter(configuration=OuterRef("pk"), state=Run.State.DONE).order_by("-finished_at")
    newest = Configuration.objects.filter(case__project=OuterRef("pk")).annotate(
        measured=Subquery(done.values("finished_at")[:1]), found=Subquery(done.values(column)[:1])
    )
    return Subquery(newest.filter(measured__isnull=False).order_by("-measured").values("found")[:1])


def _count_subquery(rows: QuerySet[Regression] | QuerySet[Run], by: str) -> Coalesce:
    counts = rows.order_by().values(by).annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(counts), 0)


def count_rows(project: Project) -> dict[str, int]:
    """How many of what removing the project deletes."""
    return {
        "commits": project.commits.count(),
        "runs": Run.objects.filter(project=project).count(),
        "experiments": project.experiments.count(),
        "regressions": project.regressions.count(),
        "channels": project.channels.count(),
    }


def commits_by_id(keys: Iterable[int | None]) -> dict[int, Commit]:
    return Commit.objects.in_bulk([key for key in keys if key is not None])


def project_commits(project: Project) -> QuerySet[Commit]:
    """Those of the project's branch, newest first."""
    return Commit.objects.filter(project=project, branch=project.branch).order_by("-position")


def unmeasured_commits(project: Project) -> list[Commit]:
    """Of the LOOKED_AT newest commits of its branch those with neither a whole run nor one under way, and
    which no request names that is still to be read.

    Those with a `manifest_problem` are among them: asking again measures none of these.
    """
    return _UNMEASURED.read_rows(project=project.pk, branch=project.branch)


def _build_unmeasured() -> QuerySet[Commit]:
    newest = Commit.objects.filter(project=Parameter("project"), branch=Parameter("branch")).order_by(
        "-position"
    )
    runs = Run.objects.filter(commit=OuterRef("pk")).exclude(origin=Run.Origin.SENTINEL)
    whole = runs.exclude(state__in=(Run.State.FAILED, Run.State.CANCELLED))
    waiting = Trigger.objects.filter(project=OuterRef("project"), state=Trigger.State.RECEIVED)
    asked = waiting.annotate(named=KT("revisions__commit")).filter(named=OuterRef("hash"))
    return newest.filter(pk__in=newest.values("pk")[:LOOKED_AT]).filter(~Exists(whole), ~Exists(asked))


_UNMEASURED = CompiledQuery(_build_unmeasured)


def commits_with_counts() -> QuerySet[Commit]:
    """Each with the numbers of its runs by how they stand, counted for those listed."""
    requested = Run.objects.filter(commit=OuterRef("pk")).exclude(origin=Run.Origin.SENTINEL)
    return Commit.objects.annotate(
        done=_count_subquery(requested.filter(state=Run.State.DONE), "commit"),
        failed=_count_subquery(requested.filter(state=Run.State.FAILED), "commit"),
        active=_count_subquery(requested.exclude(state__in=Run.TERMINAL), "commit"),
    )


COUNTED_OF_KEYS = compose_details(commits_with_counts)


def project_cases(project: Project) -> QuerySet[Case]:
    return Case.objects.filter(project=project).order_by("benchmark", "key")


def has_single_case(project: Project) -> bool:
    """Whether a column of cases would say the same in each row."""
    return len(_FIRST_CASES.read_rows(project=project.pk)) < 2


_FIRST_CASES: CompiledQuery[Any] = CompiledQuery(
    lambda: Case.objects.filter(project=Parameter("project")).values_list("pk")[:2]
)


def case_names(project: Project) -> dict[str, list[str]]:
    """The names of the cases that the project has been asked to measure, by benchmark.

    Without those of experiments alone, such as a toggle's other side, and of imported and posted results: a
    trigger asks for none of them.
    """
    asked = Run.objects.filter(configuration__case=OuterRef("pk"), origin=Run.Origin.MEASURED)
    names: dict[str, list[str]] = {}
    for case in Case.objects.filter(Exists(asked), project=project).order_by("benchmark", "key"):
        names.setdefault(case.benchmark, []).append(str(case))
    return names


def project_triggers(project: Project) -> QuerySet[Trigger]:
    """The newest first."""
    return Trigger.objects.filter(project=project).order_by("-received_at", "-pk")


def triggers_with_runs() -> QuerySet[Trigger]:
    """Each with who asked, the number of its runs, and how many of them haven't ended."""
    asked = Run.objects.filter(trigger=OuterRef("pk"))
    left = asked.exclude(state__in=Run.TERMINAL)
    return Trigger.objects.select_related("requested_by").annotate(
        run_count=_count_subquery(asked, "trigger"), runs_left=_count_subquery(left, "trigger")
    )


TRIGGERS_OF_KEYS = compose_details(triggers_with_runs)


def refused_triggers(now: datetime) -> QuerySet[Trigger]:
    """The newest refusal of each project: of the last day, and until a later trigger succeeds."""
    later = Trigger.objects.filter(project=OuterRef("project"), pk__gt=OuterRef("pk"))
    ended = later.exclude(state=Trigger.State.RECEIVED)
    recent = {"state": Trigger.State.REFUSED, "received_at__gt": now - SHOWN_REFUSALS}
    refused = Trigger.objects.filter(~Exists(ended), **recent)
    return refused.select_related("project").order_by("-received_at", "-pk")


def named_commit(project: Project, revisions: Mapping[str, Any]) -> Commit | None:
    """The commit that a trigger named by its whole hash; the newest of the branch where it named nothing."""
    commits = Commit.objects.filter(project=project)
    if not revisions:
        return commits.filter(branch=project.branch).order_by("-position").first()
    return commits.filter(hash=revisions.get("commit", "")).first()


def newest_refusal(triggers: Sequence[Trigger], now: datetime) -> Trigger | None:
    """Of a project's newest triggers, newest first, that which was refused of late, and followed by none."""
    ended = next((trigger for trigger in triggers if trigger.state != Trigger.State.RECEIVED), None)
    if ended is None or ended.state != Trigger.State.REFUSED or ended.received_at <= now - SHOWN_REFUSALS:
        return None
    return ended


def silent_machines(now: datetime) -> QuerySet[Machine]:
    """Those that should be heard: the agent of a drained machine ends, that of a retired one is asked to."""
    expected = Machine.objects.filter(state__in=(Machine.State.ACTIVE, Machine.State.PAUSED))
    seen = expected.filter(seen_at__lt=now - SILENT_AFTER, seen_at__gt=now - REMOVED_AFTER)
    return seen.select_related("pool").order_by("-seen_at")


def full_machines(now: datetime) -> QuerySet[Machine]:
    """Those that are heard, and take no work because their disks are full."""
    heard = Machine.objects.filter(state=Machine.State.ACTIVE, seen_at__gte=now - SILENT_AFTER)
    return heard.filter(too_few_bytes__isnull=False).select_related("pool").order_by("name")


def silent_parts(now: datetime) -> QuerySet[Heartbeat]:
    """The scheduler and the workers of the site that haven't said lately that they live."""
    return Heartbeat.objects.filter(seen_at__lt=now - SILENT_AFTER).order_by("name")


def runs_without_machine(now: datetime) -> QuerySet[Run, tuple[str, int]]:
    """(pool, number of waiting runs) of each pool that has no active machine: they would wait for ever."""
    alive = Machine.objects.filter(
        pool=OuterRef("configuration__pool"), seen_at__gte=now - SILENT_AFTER, state=Machine.State.ACTIVE
    )
    waiting = Run.objects.filter(~Exists(alive), state=Run.State.REQUESTED)
    counts = (
        waiting.values("configuration__pool__name")
        .annotate(number=Count("pk"))
        .order_by("configuration__pool__name")
    )
    return counts.values_list("configuration__pool__name", "number")
