"""The same commits on two branches: a step that came by a merge is the branch's regression, not a new one."""

from __future__ import annotations

import logging

from dashboard import repositories
from dashboard.measured_kinds import is_exact_counter, is_time
from dashboard.models import Change as ChangeRow
from dashboard.models import Project, Regression
from dashboard.regressions.decision.facts import Change
from dashboard.regressions.decision.gradual_changes import Growth
from dashboard.regressions.decision.series_kinds import log_size
from dashboard.repositories import RepositoryError

logger = logging.getLogger(__name__)

# A step that is larger than this times the one of the other branch has another cause too.
LARGER_CAUSE = 1.5


def find_cause_on_other_branch(project: Project, change: Change) -> int | None:
    """The open regression of another branch whose cause came with these commits, or the other way round."""
    others = Regression.objects.filter(project=project, withdrawn_at=None, recovered_by=None)
    others = others.exclude(state=Regression.State.REFUTED).exclude(first_bad__branch=change.first_bad.branch)
    for other in others.select_related("first_bad", "last_good", "culprit").order_by("pk"):
        if has_step_as_large(other, change) and is_same_range(project, change, other):
            return other.pk
    return None


def has_step_as_large(other: Regression, change: Change) -> bool:
    """True where the same series stepped there, or one that sees the same, and no less."""
    rows = ChangeRow.objects.filter(
        regression=other,
        direction=change.direction,
        series__configuration=change.series.configuration_id,
    ).select_related("series__metric", "first_bad")
    same = [
        row
        for row in rows.order_by("position")
        if row.series_id == change.series.pk or (is_time(row.series) and is_time(change.series))
    ]
    sizes = [log_size(row) for row in same]
    steps = [row for row in same if row.first_bad.branch == other.first_bad.branch]
    if steps and other.came_gradually and is_exact_counter(change.series):
        # A merge brings all of its small steps at once.
        sizes.append(log_size(Growth(change.series, steps[0].before, steps[-1].after)))
    return any(log_size(change) <= LARGER_CAUSE * size for size in sizes)


def is_same_range(project: Project, change: Change, other: Regression) -> bool:
    """True where one of the two ranges holds the other's first bad commit."""
    blamed, good, bad = other.blamed, change.last_good, change.first_bad
    try:
        mirror = project.mirror
        if blamed.hash in repositories.reachable_between(mirror, good.hash, bad.hash):
            return True
        return bad.hash in repositories.reachable_between(mirror, other.last_good.hash, blamed.hash)
    except RepositoryError as error:
        logger.warning("Whether %s holds %s can't be determined: %s", bad.hash, blamed, error)
        return False
