"""Where the demo's planted changes go and how large they are meant to be, drawn from a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ..changes.plants import KEPT, LISTED, RANKED, SMOOTHED, SUMMED, VECTORIZED, Plant

COMMITS = 29
MEASURED = 15
"""So many, evenly spread, are measured at first; what lies between is for bisection."""

SLIGHT = (0.10, 0.15)
"""Step time of the slight time regression, as a share of the step before it."""

SMALL = (0.25, 0.40)
"""Step time of the smaller one of the two others."""

LARGE = (0.60, 1.50)
"""Step time of the larger one."""

MEMORY = (0.20, 0.30)
"""Peak memory of the memory regression, as a share of the peak before it."""

IMPROVEMENT = 0.20
"""The improvement takes at least this share off the step."""

# Drawn well inside the promise, so that what is measured afterwards lies inside it too.
DRAWN_SLIGHT = (0.13, 0.14)
DRAWN_SMALL = (0.29, 0.34)
DRAWN_LARGE = (0.75, 1.30)
DRAWN_MEMORY = (0.23, 0.27)
LEAST_IMPROVEMENT = 0.23

# Measured commits of a level, at least: the first one has to show how noisy the machine is.
FIRST_LEVEL = 3
LEVEL = 2
# Beside the slight one, which is seen by three and not by two.
SLIGHT_LEVEL = 3
# Two measured commits between levels that are closer than this, as a share, could be outliers.
EQUAL = 0.1


@dataclass(frozen=True)
class Planned:
    """A planted change at its place. `size` is the share of step time or memory that it is meant to add."""

    plant: Plant
    position: int
    size: float


def describe_planted(plant: Plant, commit: str, growth: float, **more: str) -> dict[str, Any]:
    """A planted change as the JSON tells it; `percent` is the change of the metric, as measured here."""
    return {
        "commit": commit,
        "kind": "improvement" if growth < 0 else "regression",
        "metric": plant.metric,
        "phase": plant.phase,
        "function": plant.function,
        "percent": round(100 * growth, 1),
        **more,
    }


def measured_indices() -> list[int]:
    """The indices of the commits that are measured at first, the first and the last one among them."""
    return [number * (COMMITS - 1) // (MEASURED - 1) for number in range(MEASURED)]


def draw_plan(chance: random.Random, improvable: float) -> list[Planned]:
    """Draw positions, order and sizes. `improvable` is the share of the first commit's step that the
    improvement saves: after large regressions the same saving is a small one, so some orders are out."""
    replay = chance.choice((RANKED, SUMMED))
    while True:
        order = [replay, LISTED, SMOOTHED, VECTORIZED, KEPT]
        chance.shuffle(order)
        grows = {SMOOTHED: chance.uniform(*DRAWN_SLIGHT)}
        sizes = [chance.uniform(*DRAWN_SMALL), chance.uniform(*DRAWN_LARGE)]
        chance.shuffle(sizes)
        grows |= zip((replay, LISTED), sizes, strict=True)
        before = 1.0
        for plant in order[: order.index(VECTORIZED)]:
            before *= 1 + grows.get(plant, 0.0)
        # With no change before it the improvement is what it is.
        # The slight one isn't last, where the level is short.
        large_enough = before == 1.0 or improvable / before >= LEAST_IMPROVEMENT
        grows[VECTORIZED] = -improvable / before
        if large_enough and order[-1] is not SMOOTHED and not _has_equal_levels(order, grows):
            break
    grows[KEPT] = chance.uniform(*DRAWN_MEMORY)
    positions = _draw_positions(chance, order)
    return [Planned(plant, position, grows[plant]) for plant, position in zip(order, positions, strict=True)]


def _has_equal_levels(order: Sequence[Plant], grows: Mapping[Plant, float]) -> bool:
    """Whether one change of step time takes back what the one before it added, or nearly so."""
    times = [1 + grows[plant] for plant in order if plant is not KEPT]
    return any(abs(math.log(earlier * later)) < EQUAL for earlier, later in pairwise(times))


def _draw_positions(chance: random.Random, order: Sequence[Plant]) -> list[int]:
    """Indices of the planted commits: each is the first measured one of its level, or lies just before it."""
    levels = [FIRST_LEVEL, *(LEVEL for _ in order)]
    slight = order.index(SMOOTHED)
    levels[slight : slight + 2] = [SLIGHT_LEVEL, SLIGHT_LEVEL]
    for _ in range(MEASURED - sum(levels)):
        levels[chance.randrange(len(levels))] += 1
    measured = measured_indices()
    positions = []
    for number, plant in enumerate(order):
        start = sum(levels[: number + 1])
        # An improvement isn't bisected: to be told of its own commit it is measured.
        early = 0 if plant is VECTORIZED else chance.randrange(measured[start] - measured[start - 1])
        positions.append(measured[start] - early)
    return positions
