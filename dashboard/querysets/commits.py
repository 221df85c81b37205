"""A commit over all cases: its values beside those before it, and what else is known of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from dashboard.models import (
    Change,
    Check,
    Commit,
    Configuration,
    Experiment,
    Point,
    Project,
    Regression,
    Run,
    SeriesLatest,
    Trigger,
)
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.querysets.deferred_joins import compose_details, read_with_details
from dashboard.querysets.experiments import EXPERIMENTS_OF_KEYS
from dashboard.querysets.projects import commits_with_counts
from dashboard.querysets.regressions import CAUSES_WITH_COMMIT, REGRESSION_DETAILS, REGRESSIONS_OF_KEYS
from dashboard.querysets.run_costs import with_machine_seconds
from dashboard.querysets.runs import RUNS_OF_KEYS
from dashboard.querysets.series import OVERVIEW_METRIC
from dashboard.repositories import DETACHED

SHORTEST_PREFIX = 7
LISTED = 20


class MeasuredValue(NamedTuple):
    """A point of a headline series at a commit, with all that a table of cases needs of its series."""

    series: int
    configuration: int
    metric: str
    phase: str
    unit: str
    better: str
    run: int
    value: float
    low: float | None
    high: float | None
    tainted: bool


@dataclass(frozen=True, slots=True)
class BaseValue:
    """What a commit's value stands beside, and the commit that it was measured at."""

    value: float
    low: float | None
    high: float | None
    run: int
    hash: str
    position: int


def find_commits(project: Project, text: str) -> list[Commit]:
    """The one of this hash, or else whose hash begins so: two at most, enough to know whether it is one."""
    whole = _OF_HASH.read_rows(project=project.pk, hash=text)
    if whole or len(text) < SHORTEST_PREFIX:
        return whole
    begin_so = Commit.objects.filter(project=project, hash__startswith=text.lower())
    return read_with_details(COSTED_OF_KEYS, begin_so.order_by("pk")[:2])


def commits_with_costs() -> QuerySet[Commit]:
    """Each with the numbers of its runs by how they stand, and the machines' time for them."""
    return with_machine_seconds(commits_with_counts())


COSTED_OF_KEYS = compose_details(commits_with_costs)
_OF_HASH = CompiledQuery(
    lambda: commits_with_costs().filter(project=Parameter("project"), hash=Parameter("hash"))
)


def commits_beside(commit: Commit) -> list[Commit]:
    """Those before and after it on its branch, and its parents as far as they are known."""
    places = [commit.position - 1, commit.position + 1]
    values = {"project": commit.project_id, "branch": commit.branch}
    return _BESIDE.read_rows(**values, places=places, parents=commit.parents)


def _build_beside() -> QuerySet[Commit]:
    near = Q(branch=Parameter("branch"), position__in_array=Parameter("places"))
    rows = Commit.objects.filter(near | Q(hash__in_array=Parameter("parents")), project=Parameter("project"))
    return rows.order_by("position")


_BESIDE = CompiledQuery(_build_beside)


def values_at(commit: Commit) -> list[MeasuredValue]:
    """Of every headline series that was measured at the commit, of its newest run an untainted one first."""
    newest: dict[int, MeasuredValue] = {}
    for row in _VALUES_AT.read_rows(commit=commit.pk):
        newest.setdefault(row[0], MeasuredValue(*row))
    return list(newest.values())


def _build_values_at() -> QuerySet[Any]:
    runs = Run.objects.filter(commit=Parameter("commit"), state=Run.State.DONE)
    rows = Point.objects.filter(run__in=runs.exclude(origin=Run.Origin.SENTINEL), series__headline=True)
    return rows.order_by("tainted", "-run_id").values_list(
        *("series_id", "series__configuration_id", "series__metric__name", "series__phase"),
        *("series__metric__unit", "series__metric__better"),
        *("run_id", "value", "low", "high", "tainted"),
    )


_VALUES_AT: CompiledQuery[Any] = CompiledQuery(_build_values_at)


# Ancestors that are looked for; each takes a query, and few commits are pushed at once to be taken back.
LONGEST_DETACHED = 20
# One look into the index on (series, position) for each series, whatever its history.
VALUES_BEFORE = """
SELECT wanted.id, before.value, before.low, before.high, before.run_id, before.hash, before.position
FROM unnest(%(series)s::bigint[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT point.value, point.low, point.high, point.run_id, commit.hash, commit.position
    FROM dashboard_point point
    JOIN dashboard_run run ON run.id = point.run_id
    JOIN dashboard_commit commit ON commit.id = run.commit_id
    WHERE point.series_id = wanted.id AND point.position <= %(until)s AND NOT point.tainted
      AND ((commit.branch = %(branch)s AND point.position < %(position)s)
           OR (commit.branch = %(trunk)s AND point.position <= %(fork)s))
    ORDER BY point.position DESC, point.run_id DESC
    LIMIT 1
) AS before
"""


def values_before(project: Project, commit: Commit, series: Sequence[int]) -> dict[int, BaseValue]:
    """By series the newest untainted value before a commit, on its branch or where that was left."""
    if commit.branch == DETACHED:
        left = _last_on_branch(project, commit)
        return values_until(left, series) if left else {}
    fork = commit.fork if commit.branch != project.branch and commit.fork is not None else -1
    return _read_values(
        series, commit.branch, commit.position, project.branch, fork, until=max(commit.position - 1, fork)
    )


def _last_on_branch(project: Project, commit: Commit) -> Commit | None:
    """The newest ancestor on the project's branch of a commit that a force-push took off it; None where none
    is known nearby. Others that were taken off may be of another history."""
    ancestor: Commit | None = commit
    for _ in range(LONGEST_DETACHED):
        if ancestor is None or ancestor.branch == project.branch:
            return ancestor
        ancestor = Commit.objects.filter(project=project, hash__in=ancestor.parents[:1]).first()
    return None


def values_until(base: Commit, series: Sequence[int]) -> dict[int, BaseValue]:
    """By series the newest untainted value at a commit or before it, on its branch."""
    return _read_values(series, base.branch, base.position + 1, base.branch, -1, until=base.position)


def _read_values(
    series: Sequence[int], branch: str, position: int, trunk: str, fork: int, *, until: int
) -> dict[int, BaseValue]:
    asked: dict[str, Any] = {
        "series": list(series), "branch": branch, "position": position, "trunk": trunk, "fork": fork,
        "until": until,
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(VALUES_BEFORE, asked)
        return {row[0]: BaseValue(*row[1:]) for row in cursor.fetchall()}


def changes_at(commit: Commit) -> dict[int, Change]:
    """By series the step that begins at the commit, or the work that moved there."""
    return {change.series_id: change for change in _CHANGES_AT.read_rows(commit=commit.pk)}


def _build_changes_at() -> QuerySet[Change]:
    rows = Change.objects.filter(first_bad=Parameter("commit")).order_by("pk")
    related = rows.select_related("series__metric", "series__configuration__case", "regression")
    return related.defer(*(f"regression__{name}" for name in REGRESSION_DETAILS))


_CHANGES_AT = CompiledQuery(_build_changes_at)


def troubled_runs(commit: Commit) -> list[Run]:
    """LISTED of those that failed, that are kept out of judgement, and that are under way; newest first."""
    rows = Run.objects.filter(commit=commit).exclude(origin=Run.Origin.SENTINEL)
    trouble = Q(state=Run.State.FAILED) | Q(tainted=True) | ~Q(state__in=Run.TERMINAL)
    return read_with_details(RUNS_OF_KEYS, rows.filter(trouble).order_by("-requested_at", "-pk")[:LISTED])


def regressions_of_commit(commit: Commit) -> list[Regression]:
    """LISTED of those that began with it, that may have, and that it repaired; the newest first."""
    within = Q(
        cause__in=CAUSES_WITH_COMMIT,
        culprit=None,
        first_bad__branch=commit.branch,
        first_bad__position__gte=commit.position,
        last_good__position__lt=commit.position,
    )
    about = within | Q(first_bad=commit) | Q(culprit=commit) | Q(recovered_by=commit)
    rows = Regression.objects.filter(about, project=commit.project_id).order_by("-opened_at")
    return read_with_details(REGRESSIONS_OF_KEYS, rows[:LISTED])


def experiments_of_commit(commit: Commit) -> list[Experiment]:
    """LISTED of them, the newest first."""
    rows = Experiment.objects.filter(Q(base_commit=commit) | Q(head_commit=commit), project=commit.project_id)
    return read_with_details(EXPERIMENTS_OF_KEYS, rows.order_by("-requested_at", "-pk")[:LISTED])


def checks_of_commit(commit: Commit) -> list[Check]:
    """LISTED of those of which it is the head or the merge base."""
    return _CHECKS.read_rows(commit=commit.pk, hash=commit.hash, project=commit.project_id)


def _build_checks() -> QuerySet[Check]:
    about = Q(head_hash=Parameter("hash")) | Q(base_commit=Parameter("commit"))
    return Check.objects.filter(about, project=Parameter("project")).select_related("pull_request")[:LISTED]


_CHECKS = CompiledQuery(_build_checks)


def triggers_of_commit(commit: Commit) -> QuerySet[Trigger]:
    """What asked for its runs, and what asked for it by its hash; the newest first."""
    own = Exists(Run.objects.filter(trigger=OuterRef("pk"), commit=commit))
    asked = Q(own) | Q(revisions__commit__in=(commit.hash, commit.short, commit.hash[:7]))
    rows = Trigger.objects.filter(asked, project=commit.project_id).select_related("requested_by")
    return rows.order_by("-received_at", "-pk")


def configurations_beside(
    project: Project, commit: Commit, measured: Iterable[int]
) -> tuple[dict[int, Configuration], list[Configuration]]:
    """(by key those that were measured at the commit, those that are measured on the branch and have no
    whole or active run here), in one query. Superseded versions of a benchmark aren't missed, nor what was
    imported or posted: nothing here measures it.
    """
    keys = set(measured)
    found = _CONFIGURATIONS.read_rows(measured=list(keys), commit=commit.pk, project=project.pk)
    by_key = {row.pk: row for row in found}
    missing = [row for key, row in by_key.items() if key not in keys]
    return {key: row for key, row in by_key.items() if key in keys}, missing


def _build_configurations() -> QuerySet[Configuration]:
    latest = SeriesLatest.objects.filter(
        series__configuration=OuterRef("pk"), series__metric__name=OVERVIEW_METRIC, series__phase="",
        run__origin=Run.Origin.MEASURED,
    )  # fmt: skip
    runs = Run.objects.filter(configuration=OuterRef("pk"), commit=Parameter("commit"))
    newer = Configuration.objects.filter(
        case=OuterRef("case"), pool=OuterRef("pool"), quick=OuterRef("quick"), version__gt=OuterRef("version")
    )
    unmeasured = ~Exists(runs.exclude(state__in=(Run.State.FAILED, Run.State.CANCELLED)))
    is_shown = Q(pk__in_array=Parameter("measured")) | (Exists(latest) & ~Exists(newer) & unmeasured)
    rows = Configuration.objects.filter(is_shown, case__project=Parameter("project"))
    return rows.select_related("case", "pool").order_by("case__benchmark", "case__key", "pk")


_CONFIGURATIONS = CompiledQuery(_build_configurations)
