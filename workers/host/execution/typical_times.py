"""What phases take in most steps, of two sides whose steps took turns: the same steps of both, one by one.

What slows the machine comes and goes within steps. It makes the mean of a phase longer by half of it and
more on a busy machine, but meets few of its steps: their median hardly moves.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

from paceline.document import Document

# Steps are of one kind where what the phase takes in them differs by less than this factor. Of fewer steps a
# kind has no median, and where the kinds that have one hold less than this part of the phase's time, neither
# has the phase.
KIND_FACTOR, FEWEST_OF_KIND, LEAST_KNOWN = 1.5, 10, 0.5

Times = tuple[float, float]


def typical_times_by_phase(base: Document, head: Document, means: Mapping[str, Times]) -> dict[str, Times]:
    """Each phase's own seconds in a typical step, of both; by its `means` where few steps have it.

    Empty where their steps took no turns, or the windows were unlike.
    """
    taken = [measured.repetitions[0].phase_times for measured in (base, head)]
    phases: list[Mapping[str, Sequence[float]]] = [side["phases"] for side in taken if side]
    counts = {(side["every"], len(values)) for side in taken if side for values in side["phases"].values()}
    if len(phases) < len(taken) or len(counts) != 1:
        return {}
    nothing = [0.0] * counts.pop()[1]

    def times_of(phase: str, side: int) -> Sequence[float] | None:
        # Of very many phases the smallest have no single steps.
        return phases[side].get(phase, None if means[phase][side] else nothing)

    typical = {}
    for phase, mean in means.items():
        before, after = times_of(phase, 0), times_of(phase, 1)
        by_steps = None if before is None or after is None else typical_times(before, after)
        typical[phase] = by_steps or mean
    return typical


def typical_times(base: Sequence[float], head: Sequence[float]) -> Times | None:
    """Seconds of a phase in a typical step of both sides, by its times in the same steps; None of too few.

    Their difference is the median of that of single steps. Steps in which both take longer than in most, or
    only one side has the phase, are of kinds of their own, and count by how many they are.
    """
    # Of a step that something slowed on one side the other tells what it is.
    least = [min(step) or max(step) for step in zip(base, head, strict=True)]
    positive = [took for took in least if took > 0]
    if not positive:
        return None
    middle = median(positive)
    kinds: dict[tuple[bool, bool, int], list[Times]] = defaultdict(list)
    for before, after, took in zip(base, head, least, strict=True):
        level = round(math.log(took / middle) / math.log(KIND_FACTOR)) if took > 0 else 0
        kinds[before > 0, after > 0, level].append((before, after))
    counted = [steps for steps in kinds.values() if len(steps) >= FEWEST_OF_KIND]
    known = sum(min(step) or max(step) for steps in counted for step in steps)
    if known < LEAST_KNOWN * sum(least):
        return None
    total = sum(len(steps) for steps in counted)
    half = (
        sum(len(steps) * median(before + after for before, after in steps) for steps in counted) / total / 2
    )
    moved = sum(len(steps) * median(after - before for before, after in steps) for steps in counted) / total
    return max(0.0, half - moved / 2), max(0.0, half + moved / 2)
