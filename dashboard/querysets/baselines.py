"""The points that a series is read against, and the branches that it may be shown of."""

from __future__ import annotations

import re

from django.db.models import Max, QuerySet

from dashboard.models import Commit, Document, Point, Project, Series
from dashboard.querysets.regressions import PHASE_TIMES, PHASE_VALUES, values_by_phase

MOST_BRANCHES = 12
MOST_POINTS = 10
HASH = re.compile(r"[0-9a-f]{7,64}")


def find_named_commit(project: Project, name: str) -> Commit | None:
    """The stored commit of a tag, or of a hash or its beginning."""
    tagged = project.commits.filter(tags__contains=[name]).exclude(tags=[]).first()
    if tagged is not None or not HASH.fullmatch(name):
        return tagged
    found = list(project.commits.filter(hash__startswith=name)[:2])
    return found[0] if len(found) == 1 else None


def points_at_commit(series: Series, commit: Commit) -> list[Point]:
    """The untainted points of a commit, the newest first."""
    rows = _with_commits(series).filter(position=commit.position, run__commit=commit)
    return list(rows.order_by("-run_id")[:MOST_POINTS])


def points_at_fork(series: Series, fork: int) -> list[Point]:
    """Those of the newest measured commit of the project's branch that a branch has in its history."""
    main = series.case.project.branch
    rows = _with_commits(series).filter(run__commit__branch=main, position__lte=fork)
    newest = list(rows.order_by("-position", "-run_id")[:MOST_POINTS])
    return [point for point in newest if point.position == newest[0].position]


def _with_commits(series: Series) -> QuerySet[Point]:
    return Point.objects.filter(series=series, tainted=False).select_related("run__commit")


def other_branches(project: Project) -> list[str]:
    """The branches beside the project's that were asked for last."""
    beside = project.commits.filter(fork__isnull=False).exclude(branch=project.branch)
    newest = beside.values("branch").annotate(newest=Max("pk")).order_by("-newest")
    return list(newest.values_list("branch", flat=True)[:MOST_BRANCHES])


def phases_of_runs(series: Series, *runs: int) -> list[dict[str, float]]:
    """Of each run what the metric of a series is made of, by phase; empty where its document has none."""
    name = PHASE_VALUES.get(series.metric.kind, series.metric.name)
    part = "body__phases" if name == PHASE_TIMES else "body__metrics"
    rows = dict(Document.objects.filter(run__in=runs).values_list("run_id", part))
    return [values_by_phase(rows.get(run) or [], name) for run in runs]
