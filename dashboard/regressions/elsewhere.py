"""The same commits on two branches: a step that came by a merge is the branch's regression, not a new one."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from dashboard import repositories
from dashboard.models import Change, Project, Regression
from dashboard.regressions.relevance import is_time, size
from dashboard.repositories import RepositoryError

logger = logging.getLogger(__name__)

# A step that is larger than this times the one of the other branch has another cause too.
LARGER = 1.5


def known(project: Project, change: Change) -> int | None:
    """The open regression of another branch whose cause came with these commits, or the other way round."""
    others = Regression.objects.filter(project=project, withdrawn_at=None, recovered_by=None)
    others = others.exclude(state=Regression.State.REFUTED).exclude(first_bad__branch=change.first_bad.branch)
    for other in others.select_related("first_bad", "last_good", "culprit").order_by("pk"):
        if is_alike(change, other) and is_same_range(project, change, other):
            return other.pk
    return None


def is_alike(change: Change, other: Regression) -> bool:
    """Did the same series step there, or one that sees the same, and no less?"""
    rows = other.changes.filter(
        direction=change.direction,
        series__case=change.series.case_id,
        series__version=change.series.version,
        series__pool=change.series.pool_id,
        series__quick=change.series.quick,
    ).select_related("series__metric")
    same = [
        row
        for row in rows
        if row.series_id == change.series_id or (is_time(row.series) and is_time(change.series))
    ]
    return any(size(change) <= LARGER * size(row) for row in same)


def is_same_range(project: Project, change: Change, other: Regression) -> bool:
    """Does one of the two ranges hold the other's first bad commit?"""
    blamed = other.blamed
    mirror = repositories.mirror_of(project)
    try:
        return blamed.hash in repositories.commits_of(
            mirror, change.last_good.hash, change.first_bad.hash
        ) or change.first_bad.hash in repositories.commits_of(mirror, other.last_good.hash, blamed.hash)
    except RepositoryError as error:
        logger.warning("Whether %s holds %s can't be told: %s", change.first_bad, blamed, error)
        return False


def at_home(regression: Regression, members: Sequence[Change]) -> list[Change]:
    """The changes that tell its place: those of its branch. Positions of other branches don't compare."""
    branches = [one.first_bad.branch for one in members]
    home = regression.first_bad.branch
    home = home if home in branches else next(iter(branches), "")
    return [one for one in members if one.first_bad.branch == home]


def release(regression: Regression) -> None:
    """Leave the steps of other branches to themselves: what holds them was found to be none."""
    members = regression.changes.select_related("first_bad").order_by("pk")
    kept = at_home(regression, list(members))
    regression.changes.exclude(pk__in=[one.pk for one in kept]).update(regression=None)
