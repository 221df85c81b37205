"""Runs that keep all their detail whatever their age, since something else rests on them.

Each reason is found from what refers to runs, never by a walk through the runs: a history of any length has
few tags, regressions and experiments. Asked for a few runs, the same queries answer for these alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from itertools import groupby

from django.db import connection
from django.db.models import Exists, Max, Min, OuterRef, Q, QuerySet
from paceline.manifest.policy import MERGE_BASE, ROLLING

from dashboard.models import (
    Check,
    ClaimMeasurement,
    Experiment,
    PictureLink,
    Project,
    Regression,
    Run,
    Sentinel,
)
from dashboard.policy.project_policy import project_policy
from dashboard.querysets.baselines import find_named_commit

# Measured commits on each side of a step whose documents an explanation may read: those that are nearest; of
# what is read off a sweep all that tell its level. As in dashboard/regressions/explanation.
NEAREST_COMMITS, NEAREST_OF_SWEEP = 3, 10

# The runs that are asked for; None: all.
Keys = frozenset[int] | None


class Reason(StrEnum):
    """Why a run keeps its detail. Of several the first one is reported."""

    NEWEST = "newest"
    REGRESSION = "regression"
    STEP = "step"
    TAG = "tag"
    BASELINE = "baseline"
    EXPERIMENT = "experiment"
    CLAIM = "claim"
    CHECK = "check"
    SENTINEL = "sentinel"
    ENVIRONMENT = "environment"
    SHARED = "shared"


def protected_runs(project: Project, among: Keys = None) -> dict[int, Reason]:
    """The runs of a project, or of `among` these keys, that keep their detail, each with the reason."""
    found: dict[int, Reason] = {}
    for reason, find in FINDERS.items():
        for key in find(project, among):
            if among is None or key in among:
                found.setdefault(key, reason)
    return found


def _find_runs(project: Project, among: Keys, condition: Q) -> QuerySet[Run, int]:
    rows = Run.objects.filter(condition, configuration__case__project=project)
    rows = rows if among is None else rows.filter(pk__in=among)
    return rows.order_by().values_list("pk", flat=True)


def _find_newest(project: Project, among: Keys) -> Iterable[int]:
    """The newest run of each configuration, and of those of its sentinels."""
    done = Run.objects.filter(
        configuration__case__project=project, state=Run.State.DONE, finished_at__isnull=False
    )
    done = _with_neighbours(done, among)
    for of_sentinel in (Q(origin=Run.Origin.SENTINEL), ~Q(origin=Run.Origin.SENTINEL)):
        newest = done.filter(of_sentinel).order_by("configuration", "-finished_at", "-pk")
        yield from newest.distinct("configuration").values_list("pk", flat=True)


def _find_of_regressions(project: Project, among: Keys) -> Iterable[int]:
    """Of the commits of regressions that stand or that somebody triaged, and those a proof waits for."""
    kept = Regression.objects.filter(Q(withdrawn_at=None) | Q(triages__isnull=False), project=project)
    for commit in ("first_bad", "last_good", "culprit", "recovered_by"):
        yield from _find_runs(project, among, Q(commit__in=kept.exclude(**{commit: None}).values(commit)))
    yield from _find_runs(project, among, Q(awaiting_regressions__isnull=False))


def _find_beside_steps(project: Project, among: Keys) -> Iterable[int]:
    """The untainted runs nearest to each step, on the line of its branch."""
    return _read_keys(RUNS_BESIDE_STEPS, project, among, nearest=NEAREST_COMMITS, of_sweep=NEAREST_OF_SWEEP)


def _find_tagged(project: Project, among: Keys) -> Iterable[int]:
    return _find_runs(project, among, Q(commit__project=project) & ~Q(commit__tags=[]))


def _find_baselines(project: Project, among: Keys) -> Iterable[int]:
    """Of what the policy pins, and where measured branches left the project's."""
    policy = project_policy(project)
    names = {policy.pinned, *policy.branch_baselines.values()} - {"", ROLLING, MERGE_BASE}
    pinned = [commit.pk for name in sorted(names) if (commit := find_named_commit(project, name))]
    if pinned:
        yield from _find_runs(project, among, Q(commit__in=pinned))
    yield from _read_keys(RUNS_AT_FORKS, project, among)


def _find_compared(project: Project, among: Keys) -> Iterable[int]:
    """Of both sides of what was compared; checks of pull requests have a rule of their own."""
    asked = Experiment.objects.filter(project=project).exclude(purpose=Experiment.Purpose.CHECK)
    for side in ("base", "head"):
        of_side = asked.filter(
            **{f"{side}_commit": OuterRef("commit"), f"{side}_configuration": OuterRef("configuration")}
        )
        yield from _find_runs(project, among, Q(Exists(of_side)))


def _find_of_claims(project: Project, among: Keys) -> Iterable[int]:
    rows = ClaimMeasurement.objects.filter(claim__project=project)
    yield from _find_runs(project, among, Q(pk__in=rows.exclude(run=None).values("run")))
    for side in ("base", "head"):
        of_side = rows.filter(**{"commit": OuterRef("commit"), side: OuterRef("configuration")})
        yield from _find_runs(project, among, Q(Exists(of_side)))


def _find_of_checks(project: Project, among: Keys) -> Iterable[int]:
    """Of checks that are under way, refused a head, or that a person answered.

    All others say that nothing is worse, and rest on pairs, which stay: every commit of a busy branch is the
    merge base of some.
    """
    kept = Check.objects.filter(
        Q(state__in=Check.ACTIVE)
        | Q(answer=Check.Answer.WORSE)
        | ~Q(intended_by="")
        | Q(triages__isnull=False),
        project=project,
    )
    for commit in ("base_commit", "head_commit"):
        yield from _find_runs(project, among, Q(commit__in=kept.exclude(**{commit: None}).values(commit)))


def _find_pinned(project: Project, among: Keys) -> Iterable[int]:
    pinned = Sentinel.objects.filter(commit=OuterRef("commit"), configuration=OuterRef("configuration"))
    return _find_runs(project, among, Q(Exists(pinned)) & ~Q(origin=Run.Origin.SENTINEL))


def _find_environment_changes(project: Project, among: Keys) -> Iterator[int]:
    """The last run before, and the first one with, another environment: what the markers on trends mark."""
    done = Run.objects.filter(
        configuration__case__project=project, state=Run.State.DONE, environment__isnull=False
    )
    spans = (
        _with_neighbours(done, among)
        .exclude(origin=Run.Origin.SENTINEL)
        .order_by("configuration")
        .values_list("configuration", "environment")
        .annotate(first=Min("pk"), last=Max("pk"))
    )
    for _, rows in groupby(spans, key=lambda row: row[0]):
        ends = [end for _, _, first, last in rows for end in (first, last)]
        # What begins and ends a history changes nothing.
        yield from (key for key in ends if min(ends) < key < max(ends))


def _find_shared(project: Project, among: Keys) -> Iterable[int]:
    links = PictureLink.objects.filter(project=project, revoked_at=None, run__isnull=False)
    return _find_runs(project, among, Q(pk__in=links.values("run")))


def _read_keys(statement: str, project: Project, among: Keys, **numbers: int) -> list[int]:
    """Of a statement that takes the project, its branch and the configurations of the runs asked for."""
    configurations = None if among is None else list(_configurations_of(among))
    asked = {"project": project.pk, "trunk": project.branch, "configurations": configurations, **numbers}
    with connection.cursor() as cursor:
        cursor.execute(statement, asked)
        return [key for (key,) in cursor.fetchall()]


def _with_neighbours(rows: QuerySet[Run], among: Keys) -> QuerySet[Run]:
    """Those of the same configurations as well: what is newest, or first, shows beside the others only."""
    return rows if among is None else rows.filter(configuration__in=_configurations_of(among))


def _configurations_of(among: frozenset[int]) -> QuerySet[Run, int]:
    rows = Run.objects.filter(pk__in=among).order_by().distinct()
    return rows.values_list("configuration", flat=True)


Finder = Callable[[Project, Keys], Iterable[int]]
FINDERS: dict[Reason, Finder] = {
    Reason.NEWEST: _find_newest,
    Reason.REGRESSION: _find_of_regressions,
    Reason.STEP: _find_beside_steps,
    Reason.TAG: _find_tagged,
    Reason.BASELINE: _find_baselines,
    Reason.EXPERIMENT: _find_compared,
    Reason.CLAIM: _find_of_claims,
    Reason.CHECK: _find_of_checks,
    Reason.SENTINEL: _find_pinned,
    Reason.ENVIRONMENT: _find_environment_changes,
    Reason.SHARED: _find_shared,
}

# By the index on (series, position), read from each step outwards.
RUNS_BESIDE_STEPS = """
WITH steps AS (
    SELECT change.series_id, change.first_bad_id AS commit_id
    FROM dashboard_change change
    JOIN dashboard_commit bad ON bad.id = change.first_bad_id AND bad.project_id = %(project)s
    UNION
    SELECT regression.series_id, regression.first_bad_id FROM dashboard_regression regression
    WHERE regression.project_id = %(project)s AND regression.withdrawn_at IS NULL
), placed AS (
    SELECT steps.series_id, bad.branch, bad.position, bad.fork,
           CASE WHEN metric.name LIKE 'scaling\\_exponent%%' OR metric.name = 'projected_time'
                THEN %(of_sweep)s ELSE %(nearest)s END AS reach
    FROM steps
    JOIN dashboard_commit bad ON bad.id = steps.commit_id
    JOIN dashboard_series series ON series.id = steps.series_id
    JOIN dashboard_metric metric ON metric.id = series.metric_id
    WHERE %(configurations)s::bigint[] IS NULL
       OR series.configuration_id = ANY(%(configurations)s::bigint[])
)
SELECT DISTINCT point.run_id
FROM placed
CROSS JOIN LATERAL (
    SELECT old.position FROM (
        SELECT ranked.position, row_number() OVER (ORDER BY ranked.position DESC) AS place FROM (
            SELECT DISTINCT point.position
            FROM dashboard_point point
            JOIN dashboard_run run ON run.id = point.run_id
            JOIN dashboard_commit commit ON commit.id = run.commit_id
            WHERE point.series_id = placed.series_id AND NOT point.tainted
              AND point.position < placed.position
              AND (commit.branch = placed.branch
                   OR (commit.branch = %(trunk)s AND point.position <= placed.fork))
            ORDER BY point.position DESC LIMIT %(of_sweep)s
        ) AS ranked
    ) AS old WHERE old.place <= placed.reach
    UNION ALL
    SELECT fresh.position FROM (
        SELECT ranked.position, row_number() OVER (ORDER BY ranked.position) AS place FROM (
            SELECT DISTINCT point.position
            FROM dashboard_point point
            JOIN dashboard_run run ON run.id = point.run_id
            JOIN dashboard_commit commit ON commit.id = run.commit_id
            WHERE point.series_id = placed.series_id AND NOT point.tainted
              AND point.position >= placed.position AND commit.branch = placed.branch
            ORDER BY point.position LIMIT %(of_sweep)s
        ) AS ranked
    ) AS fresh WHERE fresh.place <= placed.reach
) AS near
JOIN dashboard_point point ON point.series_id = placed.series_id AND point.position = near.position
JOIN dashboard_run run ON run.id = point.run_id
JOIN dashboard_commit commit ON commit.id = run.commit_id
    AND (commit.branch = placed.branch OR (commit.branch = %(trunk)s AND commit.position <= placed.fork))
"""

# Of each configuration the runs of the newest measured commit that a branch has in common with the project's.
RUNS_AT_FORKS = """
WITH forks AS (
    SELECT DISTINCT run.configuration_id, commit.fork
    FROM dashboard_commit commit
    JOIN dashboard_run run ON run.commit_id = commit.id AND run.state = 'done'
    WHERE commit.project_id = %(project)s AND commit.fork IS NOT NULL AND commit.branch <> %(trunk)s
      AND (%(configurations)s::bigint[] IS NULL
           OR run.configuration_id = ANY(%(configurations)s::bigint[]))
)
SELECT DISTINCT run.id
FROM forks
CROSS JOIN LATERAL (
    SELECT base.id
    FROM dashboard_commit base
    WHERE base.project_id = %(project)s AND base.branch = %(trunk)s AND base.position <= forks.fork
      AND EXISTS (
          SELECT FROM dashboard_run measured
          WHERE measured.commit_id = base.id AND measured.configuration_id = forks.configuration_id
            AND measured.state = 'done' AND NOT measured.tainted
      )
    ORDER BY base.position DESC LIMIT 1
) AS base
JOIN dashboard_run run ON run.commit_id = base.id AND run.configuration_id = forks.configuration_id
"""
