"""The commit and the phases that a series is read against, and the branches that it may be shown of."""

from __future__ import annotations

from typing import Any

from django.db.models import Max, QuerySet

from dashboard.models import Commit, Document, Project, Series
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.querysets.regression_details import PHASE_TIMES, PHASE_VALUES, values_by_phase
from dashboard.repositories import ABBREVIATED_HASH

MOST_BRANCHES = 12


def find_named_commit(project: Project, name: str) -> Commit | None:
    """The stored commit of a tag, or of a hash or its beginning."""
    tagged = project.commits.filter(tags__contains=[name]).exclude(tags=[]).first()
    if tagged is not None or not ABBREVIATED_HASH.fullmatch(name):
        return tagged
    found = list(project.commits.filter(hash__startswith=name)[:2])
    return found[0] if len(found) == 1 else None


def other_branches(project: Project) -> list[str]:
    """The branches beside the project's that were asked for last."""
    return _OTHER_BRANCHES.read_rows(project=project.pk, branch=project.branch)


def _build_other_branches() -> QuerySet[Any]:
    forked = Commit.objects.filter(project=Parameter("project"), fork__isnull=False)
    beside = forked.exclude(branch=Parameter("branch"))
    newest = beside.values("branch").annotate(newest=Max("pk")).order_by("-newest")
    return newest.values_list("branch", flat=True)[:MOST_BRANCHES]


_OTHER_BRANCHES: CompiledQuery[Any] = CompiledQuery(_build_other_branches)


def phases_of_runs(series: Series, *runs: int) -> list[dict[str, float]]:
    """Of each run what the metric of a series is made of, by phase; empty where its document has none."""
    name = PHASE_VALUES.get(series.metric.kind, series.metric.name)
    part = "body__phases" if name == PHASE_TIMES else "body__metrics"
    rows = dict(Document.objects.filter(run__in=runs).values_list("run_id", part))
    return [values_by_phase(rows.get(run) or [], name) for run in runs]
