"""Who did it: is a change the commits' doing at all, and which phase and functions explain it?"""

from __future__ import annotations

from copy import copy

from dashboard.models import Change, Commit, Metric, Project, Regression
from dashboard.regressions import (
    attribution,
    branches,
    devices,
    diffs,
    history,
    operations,
    paired,
    profiles,
    suspects,
    sweeps,
)
from dashboard.regressions.changes import Found
from dashboard.regressions.ranges import Range


def is_commits(project: Project, change: Change, found: Found) -> bool:
    """Where the surroundings changed at the same point: is it still the commits' doing?

    A driver, a system or a harness never is. Torch, Python and packages are, if the commits touched a file
    that says what is installed.
    """
    if found.system:
        return False
    return diffs.changes_environment(diffs.touched(project, change.last_good, change.first_bad).paths)


def attribute(
    project: Project, regression: Regression, head: Change, histories: dict[int, history.History]
) -> None:
    """Name what explains the change that speaks: phase, host or device, functions, tensor operations."""
    past = histories.get(head.series_id) or history.load(
        head.series, branches.of(project, head.first_bad.branch)
    )
    sides = attribution.sides_of(where_proved(regression, head), past)
    proved = paired.phases_of(regression)
    explanation = attribution.explain(head, sides, proved.deltas if proved else None)
    regression.phase, regression.phase_share = explanation.phase, explanation.share
    regression.place = devices.place_of(head.series, explanation.phase, sides, explanation.delta)
    rank(project, regression, head, sides)
    ranked = ["suspects", "operations"]
    regression.save(update_fields=["phase", "phase_share", "place", *ranked, "updated_at"])


def where_proved(regression: Regression, head: Change) -> Change:
    """The change, moved to its regression's commits where noise has placed it beside what pairs proved."""
    good, bad = regression.last_good, regression.first_bad
    apart = Range.of(head).overlap(Range(good.position, bad.position)) is None
    if not apart or head.first_bad.branch != bad.branch:
        return head
    moved = copy(head)
    moved.last_good, moved.first_bad, moved.position = good, bad, bad.position
    return moved


def rank(project: Project, regression: Regression, head: Change, sides: attribution.Sides) -> None:
    """Functions and tensor operations, from the profiles of two undisturbed runs next to the step."""
    regression.suspects, regression.operations = [], []
    if not sides.good or not sides.bad:
        return
    before, after = profiles.of_level(sides.good[::-1]), profiles.of_level(sides.bad)
    kind, phase = head.series.metric.kind, regression.phase
    touched = diffs.touched(project, *difference_of(regression))
    delta = lost_per_step(head)
    regression.suspects = suspects.rank(before, after, touched, kind=kind, phase=phase, delta=delta)
    regression.operations = operations.rank(before, after, kind=kind, phase=phase, delta=delta)


def difference_of(regression: Regression) -> tuple[Commit, Commit]:
    """The commits between which the cause lies: of a merge the commit of its branch, where it is known."""
    culprit = regression.culprit
    if culprit and culprit.parents:
        return Commit(hash=culprit.parents[0]), culprit
    return regression.last_good, regression.first_bad


def lost(head: Change) -> float:
    """By how much the value got worse, in its unit; for a rate in seconds per step."""
    if head.series.metric.kind == Metric.Kind.RATE and head.before and head.after:
        return 1 / head.after - 1 / head.before
    return abs(head.after - head.before)


def lost_per_step(head: Change) -> float | None:
    """The same in seconds or in counts per step; None where the metric isn't one of a step's."""
    kind = head.series.metric.kind
    if kind not in (*attribution.CLOCKED, Metric.Kind.COUNTER) or sweeps.may_be_read(head.series):
        return None
    return lost(head)
