"""What later improvements left of a step in the phase that explains it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from dashboard.models import Series as SeriesRow
from dashboard.phases import sweeps
from dashboard.phases.paths import is_in_phase
from dashboard.regressions.decision.facts import Change, Series
from dashboard.regressions.decision.repair import LEAST_SHARE
from dashboard.regressions.explanation import phase_shares
from dashboard.regressions.explanation.phase_shares import Sides
from dashboard.regressions.series.branch_line import BranchLine
from dashboard.regressions.series.history import load_history

# So many other phases say how fast the machine is: their median is none of a single commit's.
FEWEST_OTHERS = 4
# What takes less of a step says more about noise than about the machine.
LEAST_PART = 0.01


def phase_left_over(line: BranchLine, step: Change, improvement: Change, phase: str = "") -> float | None:
    """The part of a step that an improvement left in its phase; None where no phase explains the step.

    `phase`: the one that does; empty where the points are to say which.
    """
    series = SeriesRow.objects.select_related("metric").get(pk=step.series.pk)
    past = load_history(series, line)
    sides = phase_shares.sides_of_step(step, past)
    if not phase:
        explained = phase_shares.explain_by_phase(step, sides)
        phase = explained.phase if (explained.share or 0.0) >= LEAST_SHARE else ""
    after = phase_shares.sides_of_step(improvement, past).bad
    if not phase or not after:
        return None
    moved = phase_growth(step.series, phase, sides)
    now = phase_growth(step.series, phase, Sides(sides.good, after))
    # At the machine's pace the step may be gone from its own runs: then nothing is known of it.
    return None if moved is None or now is None or moved <= 0 else now / moved


def phase_growth(series: Series, phase: str, sides: Sides) -> float | None:
    """By how much a phase is above its level before the step in the runs of the other side; None: unknown.

    Of times as they were at the pace that the machine had before the step.
    """
    # A run may have been tainted since the step was found.
    if not sides.good or not sides.bad:
        return None
    if series.metric.kind in phase_shares.CLOCKED and not sweeps.may_be_read_off_sweep(series):
        values = phase_shares.values_by_phase(series, "phase_self_time", sides)
        return growth_at_pace(phase, phase_levels(values, sides.good), phase_levels(values, sides.bad))
    deltas = phase_shares.phase_losses(series, sides)
    return phase_shares.delta_within(deltas, phase) if deltas else None


def phase_levels(values: Mapping[str, dict[int, float]], runs: Sequence[int]) -> dict[str, float]:
    return {phase: phase_shares.median_level(by_run, runs) for phase, by_run in values.items() if phase}


def growth_at_pace(phase: str, before: Mapping[str, float], after: Mapping[str, float]) -> float | None:
    """What the phase and those nested in it take more, had the machine kept its pace; None without phases.

    The pace is how the other phases moved, in the median: commits move a few of them, a machine all. With
    few others it isn't known, and taken to be the same.
    """
    if not before:
        return None
    least = LEAST_PART * sum(before.values())
    others = [path for path, level in before.items() if level > least and not is_in_phase(path, phase)]
    paces = [after[path] / before[path] for path in others if after[path] > 0]
    pace = median(paces) if len(paces) >= FEWEST_OTHERS else 1.0
    inside = [path for path in before if is_in_phase(path, phase)]
    return sum(after[path] / pace - before[path] for path in inside)
