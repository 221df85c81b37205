"""A disturbed run is measured again by itself: later, when its machine may be calmer, and twice at most."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from paceline.document import CODES_OF_DISTURBANCE

from dashboard import dispatch
from dashboard.models import Project, Run
from dashboard.repositories import DETACHED
from dashboard.runs.requests import repeat_run

# How long after the first disturbed run of a commit, and after the second; the third is left as it is.
DELAYS = (timedelta(minutes=10), timedelta(hours=1))
# After all that somebody waits for, before what a schedule asks for.
PRIORITY = -5


def remeasure_disturbed(run: Run, tainting: Iterable[str]) -> Run | None:
    """Ask for a stored run once more where all that keeps it out of judgement is what disturbed it.

    `tainting`: the codes of its warnings that taint. None where it isn't measured again: what the code itself
    did wrong is the same at any hour.
    """
    codes = set(tainting)
    if not codes or not codes <= CODES_OF_DISTURBANCE:
        return None
    if run.origin != Run.Origin.MEASURED or run.commit.branch == DETACHED:
        return None
    same = Run.objects.filter(
        commit=run.commit_id, configuration=run.configuration_id, state=Run.State.DONE
    ).exclude(origin=Run.Origin.SENTINEL)
    disturbed = same.filter(origin=Run.Origin.MEASURED, tainted=True, pk__lte=run.pk).count()
    if disturbed > len(DELAYS) or same.filter(tainted=False, pk__gt=run.pk).exists():
        return None
    return repeat_run(run, run.commit, PRIORITY, not_before=DELAYS[disturbed - 1])


def hasten_remeasuring(project: Project) -> list[int]:
    """Let what is still to be measured again wait no longer: nothing else is left. The keys of the runs."""
    left = Run.objects.filter(configuration__case__project=project).exclude(state__in=Run.TERMINAL)
    if left.filter(state=Run.State.REQUESTED).update(not_before=None):
        for pool in set(left.values_list("configuration__pool__name", flat=True)):
            dispatch.wake_workers(pool)
    return list(left.order_by("pk").values_list("pk", flat=True))
