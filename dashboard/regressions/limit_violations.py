"""Crossed limits: the manifest's bound is the judgement, so no proof is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dashboard.models import Limit
from dashboard.querysets.composed import ComposedQuery, Given
from dashboard.regressions.decision import facts
from dashboard.regressions.row_facts import commit_fact, series_fact
from dashboard.regressions.series.branch_line import Line

RELATED = ("series__metric", "series__configuration", "run__commit")


_LIMITS_OF_RUN = ComposedQuery(
    lambda: (
        Limit.objects.filter(run=Given("run"), tainted=False).select_related(*RELATED).order_by("series_id")
    )
)


def limits_of_run(run: int) -> list[Limit]:
    """How an undisturbed run stood to the limits of its manifest."""
    return _LIMITS_OF_RUN.read_rows(run=run)


def new_violations(limits: Iterable[Limit], line: Line) -> Iterator[facts.LimitViolation]:
    """Those that a run is the first of its line to cross, and that no regression tells yet."""
    crossed = [limit for limit in limits if limit.crossed and limit.regression_id is None]
    for limit in crossed:
        before = limit_before(limit, line)
        if before is None or not before.crossed:
            yield facts.LimitViolation(
                limit=limit.pk,
                series=series_fact(limit.series),
                commit=commit_fact(limit.run.commit),
                value=limit.value,
                bound=limit.violated_bound,
                before=commit_fact(before.run.commit) if before else None,
                value_before=before.value if before else None,
            )


def limit_before(limit: Limit, line: Line) -> Limit | None:
    """How the newest earlier commit stood to the same limit: of the branch, or before the branch began."""
    same = Limit.objects.filter(
        line.lookup("run__commit"), series=limit.series_id, tainted=False, position__lt=limit.position
    )
    return same.select_related("run__commit").order_by("-position", "-pk").first()


def kept_limits(limits: Iterable[Limit]) -> Iterator[tuple[int, facts.Commit]]:
    """Series whose limit a run keeps, with its commit."""
    for limit in limits:
        if not limit.crossed:
            yield limit.series_id, commit_fact(limit.run.commit)
