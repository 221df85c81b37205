"""Which phase and functions explain a regression, once its proof has ended.

Only then are the runs at both sides of its commit there, and is it known which other proved steps bound the
levels beside it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from dashboard import repositories
from dashboard.models import Commit, Project, Regression
from dashboard.regressions import blame, diffs, settling, speaking
from dashboard.repositories import RepositoryError

logger = logging.getLogger(__name__)

# Of more commits than this nobody is told which one changed a function.
MOST_COMPARED = 20


def explain_proved(project: Project, regression: Regression) -> None:
    """Attribute a confirmed regression, and the one before it: what it was blamed for may be this one's."""
    if regression.state != Regression.State.CONFIRMED:
        return
    same = project.regressions.filter(
        series=regression.series_id,
        state=Regression.State.CONFIRMED,
        withdrawn_at=None,
        first_bad__branch=regression.first_bad.branch,
        first_bad__position__lt=regression.first_bad.position,
    )
    before = same.select_related("series__metric", "first_bad", "last_good").order_by("-first_bad__position")
    for one in filter(None, [before.first(), regression]):
        # Of a limit that was crossed no step is known.
        if not one.limit and (found := speaking.of(one)):
            blame.attribute(project, one, found.head, {})
    sentence = told_by_diff(project, regression)
    if sentence not in regression.bisected:
        regression.bisected = f"{regression.bisected} {sentence}"
        regression.save(update_fields=["bisected", "updated_at"])


def told_by_diff(project: Project, regression: Regression) -> str:
    """Of commits that runs can't tell apart: the only one that changed the first suspect. No proof."""
    good, bad = regression.last_good, regression.first_bad
    suspect = regression.suspects[0] if regression.suspects else {}
    if not regression.bisected or not suspect.get("changed") or bad.position - good.position < 2:
        return ""
    mirror = repositories.mirror_of(project)
    try:
        line = [good.hash, *repositories.between(mirror, good.hash, bad.hash, MOST_COMPARED)]
    except RepositoryError as error:
        logger.warning("Which commit of %s..%s changed a suspect can't be told: %s", good, bad, error)
        return ""
    changing = [new for old, new in pairwise(line) if changes(project, old, new, suspect)]
    return f"Of them only {changing[0][:10]} changes {suspect['function']}." if len(changing) == 1 else ""


def changes(project: Project, old: str, new: str, suspect: Mapping[str, Any]) -> bool:
    """Does the commit `new` change the function?"""
    touched = diffs.touched(project, Commit(hash=old), Commit(hash=new))
    found = touched.find(suspect["file"], suspect["function"], 0)
    return bool(found and found.changed)


def heads_of(regressions: Iterable[Regression]) -> list[settling.Settled]:
    """Those that stand, each with what speaks for it; without those of which that is still measured."""
    rows = Regression.objects.filter(pk__in=[one.pk for one in regressions], withdrawn_at=None, limit="")
    rows = rows.select_related("series__metric", "first_bad", "last_good", "culprit")
    return [(one, found.head) for one in rows.order_by("pk") if (found := speaking.of(one))]
