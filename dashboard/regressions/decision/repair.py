"""Which later commit repaired a regression: the one that took its step back where it was made.

An improvement somewhere else may bring the level back as well: what the regression costs is still paid then.
So where a phase explains the step, that phase must have got its time, its memory or its calls back. And where
another regression lies on top, the level says nothing: then the improvement and its phase decide alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from dashboard.regressions.decision.facts import Change
from dashboard.regressions.decision.requested_facts import GatheredFacts, PhaseLeftOver
from dashboard.regressions.decision.series_kinds import BETTER, is_quality

# A level is back where it was when no more than this part of the step is left.
LEFT_OVER = 0.2
# A phase's level is less certain than the whole's: beside a whole that is back, more may seem to be left.
LEFT_OF_PHASE = 0.3
# An improvement that gives back less of the step isn't asked which phase it is in. It may be little on a
# machine that has slowed down meanwhile.
LEAST_BACK = 0.3

# A phase that explains less of a step than this doesn't stand for it.
LEAST_SHARE = 0.5

RATE = "rate"


def find_repair(step: Change, changes: Iterable[Change], facts: GatheredFacts, phase: str = "") -> int | None:
    """The key of the commit whose improvement took a step back; None while none has.

    `phase`: the one that is known to explain the step, if any.
    """
    later = [
        change
        for change in changes
        if change.direction == BETTER
        and change.series.pk == step.series.pk
        and change.first_bad.branch == step.first_bad.branch
        and change.first_bad.position > step.first_bad.position
    ]
    for improvement in sorted(later, key=lambda change: change.first_bad.position):
        if is_repaired_by(step, improvement, facts, phase):
            return improvement.first_bad.pk
    return None


def is_repaired_by(step: Change, improvement: Change, facts: GatheredFacts, phase: str = "") -> bool:
    """True where an improvement took the step back; of a large one the step's own phase decides."""
    level_back = is_level_back(step, improvement)
    if is_quality(step.series):
        # No phase holds what is learned.
        return level_back
    if not level_back and not is_large_enough(step, improvement):
        return False
    left_of_phase = facts.answer_to(PhaseLeftOver(step, improvement, phase))
    if level_back:
        return left_of_phase is None or left_of_phase <= LEFT_OF_PHASE
    return left_of_phase is not None and left_of_phase <= LEFT_OVER


def is_level_back(step: Change, improvement: Change) -> bool:
    """True where the level after the improvement is nearly the one before the regression, or better."""
    size, left = step.after - step.before, improvement.after - step.before
    return size != 0 and left / size <= LEFT_OVER


def is_large_enough(step: Change, improvement: Change) -> bool:
    """True where the improvement may have taken the step back, whatever the levels are by then.

    What other commits cost meanwhile hides part of it: whether the step is gone is for its phase to say.
    """
    return abs(lost_value(improvement)) >= LEAST_BACK * abs(lost_value(step))


def lost_value(change: Change) -> float:
    """By how much the value moved, in its unit; for a rate in seconds per step."""
    if change.series.metric.kind == RATE and change.before and change.after:
        return 1 / change.after - 1 / change.before
    return abs(change.after - change.before)
