"""Which later commit repaired a regression: the one that took its step back where it was made.

An improvement somewhere else may bring the level back as well: what the regression costs is still paid then.
So where a phase explains the step, that phase must have got its time, its memory or its calls back. And where
another regression lies on top, the level says nothing: then the improvement and its phase speak alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from dashboard.models import Change, Project, Regression
from dashboard.regressions import attribution, branches, history, sweeps
from dashboard.regressions.blame import lost
from dashboard.regressions.phases import holds

# A level is back where it was when no more than this part of the step is left.
LEFT_OVER = 0.2
# A phase's level is less certain than the whole's: beside a whole that is back, more may seem to be left.
LEFT_OF_PHASE = 0.3
# An improvement that gives back less of the step isn't asked which phase it is in. It may be little on a
# machine that has slowed down meanwhile.
LEAST_BACK = 0.3
# So many other phases say how fast the machine is: their median is none of a single commit's.
FEWEST_OTHERS = 4
# What takes less of a step says more about noise than about the machine.
LEAST_PART = 0.01
# A phase that explains less of the step than this doesn't speak for it.
LEAST_SHARE = 0.5


def repaired_by(project: Project, regression: Regression, head: Change) -> int | None:
    """The commit of the first improvement that took back the step that speaks for a regression, or None."""
    step = as_in_trunk(project, regression, head)
    later = Change.objects.filter(
        series=step.series_id,
        first_bad__branch=step.first_bad.branch,
        direction=Change.Direction.IMPROVEMENT,
        position__gt=step.position,
    )
    likely = [one for one in later.order_by("position") if is_back(step, one) or takes_back(step, one)]
    if not likely:
        return None
    phases = Phases(project, step)
    return next((one.first_bad_id for one in likely if repairs(step, one, phases.left(one))), None)


def as_in_trunk(project: Project, regression: Regression, head: Change) -> Change:
    """What has to be repaired: once a branch was merged, the step that it made in the project's branch."""
    merged = regression.changes.filter(series=head.series_id, first_bad__branch=project.branch)
    return merged.select_related("first_bad", "series__metric").first() or head


def repairs(step: Change, improvement: Change, left_of_phase: float | None) -> bool:
    """Did the improvement take the step back, with this part of it left in its phase (None: unknown)?"""
    if is_back(step, improvement):
        return left_of_phase is None or left_of_phase <= LEFT_OF_PHASE
    return left_of_phase is not None and left_of_phase <= LEFT_OVER


def is_back(step: Change, improvement: Change) -> bool:
    """Is the level after the improvement nearly the one before the regression, or better?"""
    size, left = step.after - step.before, improvement.after - step.before
    return size != 0 and left / size <= LEFT_OVER


def takes_back(step: Change, improvement: Change) -> bool:
    """Is the improvement large enough to have taken the step back, whatever the levels are by then?

    What other commits cost meanwhile hides part of it: whether the step is gone is for its phase to say.
    """
    return abs(lost(improvement)) >= LEAST_BACK * abs(lost(step))


class Phases:
    """The phase that explains a step, if one does, and what later improvements left of its step."""

    def __init__(self, project: Project, step: Change) -> None:
        self.step = step
        self.past = history.load(step.series, branches.of(project, step.first_bad.branch))
        self.sides = attribution.sides_of(step, self.past)
        explanation = attribution.explain(step, self.sides)
        self.phase = explanation.phase if (explanation.share or 0.0) >= LEAST_SHARE else ""

    def left(self, improvement: Change) -> float | None:
        """The part of the phase's step that the improvement left; None where no phase explains the step."""
        after = attribution.sides_of(improvement, self.past).bad
        if not self.phase or not after:
            return None
        moved, now = self.moved(self.sides.bad), self.moved(after)
        # At the machine's pace the step may be gone from its own runs: then nothing is known of it.
        return None if moved is None or now is None or moved <= 0 else now / moved

    def moved(self, runs: tuple[int, ...]) -> float | None:
        """By how much the phase is above its level before the step in these runs; None: they don't say.

        Of times as they were at the pace that the machine had before the step.
        """
        series, sides = self.step.series, attribution.Sides(self.sides.good, runs)
        if series.metric.kind in attribution.CLOCKED and not sweeps.may_be_read(series):
            values = attribution.values_of(series, "phase_self_time", sides)
            return moved_at_pace(self.phase, levels(values, sides.good), levels(values, sides.bad))
        deltas = attribution.deltas_between(series, sides)
        return attribution.within(deltas, self.phase) if deltas else None


def levels(values: Mapping[str, dict[int, float]], runs: Sequence[int]) -> dict[str, float]:
    return {phase: attribution.level(of, runs) for phase, of in values.items() if phase}


def moved_at_pace(phase: str, before: Mapping[str, float], after: Mapping[str, float]) -> float | None:
    """What the phase and those nested in it take more, had the machine kept its pace; None without phases.

    The pace is how the other phases moved, in the median: commits move a few of them, a machine all. With
    few others it isn't known, and taken to be the same.
    """
    if not before:
        return None
    least = LEAST_PART * sum(before.values())
    others = [one for one, level in before.items() if level > least and not holds(phase, one)]
    paces = [after[one] / before[one] for one in others if after[one] > 0]
    pace = median(paces) if len(paces) >= FEWEST_OTHERS else 1.0
    inside = [one for one in before if holds(phase, one)]
    return sum(after[one] / pace - before[one] for one in inside)
