"""What a proof asks of the workers: interleaved runs of two commits, or a commit measured in full."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.models import Min, QuerySet

from dashboard import dispatch, repositories, runs
from dashboard.models import Change, Commit, Confirmation, Project, Regression, Run, Series
from dashboard.regressions import promise

# Of a proof's own runs: before history, behind what somebody waits for.
PRIORITY = 5


def known(project: Project, sha: str) -> Commit:
    """The row of a commit that the repository holds, made where it was never asked for."""
    mirror = repositories.mirror_of(project)
    return runs.known(project, repositories.facts(mirror, [sha]))[sha]


def request(
    regression: Regression,
    purpose: str,
    good: Commit,
    bad: Commit,
    whole: Confirmation | None = None,
    change: Change | None = None,
) -> None:
    """Have two commits measured in turn. A part of a step is weighed against `whole`, the proof of all of it.

    What detection saw is of other hours: beside that, a commit with the whole step may seem to have a part.
    `change`: of the regression, if it isn't the one that speaks that is weighed.
    """
    weighed = change or regression
    series = weighed.series
    ratio = whole.ratio if whole and whole.series_id == series.pk else None
    after = weighed.after if ratio is None else series.metric.level(weighed.before, ratio)
    Confirmation.objects.create(
        regression=regression,
        purpose=purpose,
        good=good,
        bad=bad,
        series=series,
        pool=series.pool,
        before=weighed.before,
        after=after,
        error=promise.error(regression.project),
    )
    dispatch.wake_workers(series.pool.name)


def measure(regression: Regression, commits: Sequence[Commit]) -> bool:
    """Request what no run has measured yet of the regression's cases.

    False where there is nothing to wait for.
    """
    waiting = False
    for series in by_case(regression):
        tried = runs_of(series, commits)
        waiting |= any(run.state not in Run.TERMINAL for run in tried.values())
        pattern = Run.objects.filter(state=Run.State.DONE, points__series=series).order_by("-pk").first()
        missing = [one for one in commits if one.pk not in tried]
        if pattern is None or not missing:
            continue
        for commit in missing:
            runs.repeat(pattern, commit, priority=PRIORITY)
        waiting = True
    return waiting


def measure_again(series: Series, commit: Commit) -> bool:
    """Request a second run of a commit that has one. False where there is nothing to wait for."""
    found = list(all_runs(series, [commit]))
    if any(run.state not in Run.TERMINAL for run in found):
        return True
    if len(found) != 1 or found[0].state != Run.State.DONE:
        return False
    runs.repeat(found[0], commit, priority=PRIORITY)
    return True


def by_case(regression: Regression) -> list[Series]:
    """One series of each case, pool and version that the regression's changes are of."""
    changes = Change.objects.filter(regression=regression).values(
        "series__case", "series__pool", "series__version", "series__quick"
    )
    keys = {regression.series_id, *(row["least"] for row in changes.annotate(least=Min("series")))}
    found: dict[tuple[int, int, int, bool], Series] = {}
    for one in Series.objects.filter(pk__in=keys).select_related("pool").order_by("pk"):
        found.setdefault((one.case_id, one.pool_id, one.version, one.quick), one)
    return list(found.values())


def runs_of(series: Series, commits: Iterable[Commit]) -> dict[int, Run]:
    """The newest run of the series' case at each of the commits that has one; a sentinel's is none."""
    return {run.commit_id: run for run in all_runs(series, commits)}


def all_runs(series: Series, commits: Iterable[Commit]) -> QuerySet[Run]:
    """The runs of the series' case at these commits, oldest first; a sentinel's is none."""
    rows = Run.objects.filter(
        commit__in=commits,
        case=series.case_id,
        pool=series.pool_id,
        version=series.version,
        quick=series.quick,
    )
    rows = rows.exclude(state=Run.State.CANCELLED).exclude(origin=Run.Origin.SENTINEL)
    return rows.select_related("commit").order_by("pk")
