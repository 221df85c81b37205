"""Where the demo's planted changes go and how large they are meant to be, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..changes.plants import KEPT, LISTED, RANKED, SMOOTHED, SUMMED, VECTORIZED, Plant

COMMITS = 35
STRIDE = 2
"""Every second commit is measured, the first and the last among them; what lies between is for bisection."""

MEASURED = COMMITS // STRIDE + 1

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

# Measured commits of a level, at least: two between equal levels, as before a regression and after an
# improvement of its size, could be outliers.
LEVEL = 3
LAST_LEVEL = 2


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


def measured_indices(commits: int) -> list[int]:
    """The indices of the commits that are measured at first."""
    return list(range((commits - 1) % STRIDE, commits, STRIDE))


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
        if large_enough and order[-1] is not SMOOTHED:
            break
    grows |= {VECTORIZED: -improvable / before, KEPT: chance.uniform(*DRAWN_MEMORY)}
    positions = _draw_positions(chance, order)
    return [Planned(plant, position, grows[plant]) for plant, position in zip(order, positions, strict=True)]


def _draw_positions(chance: random.Random, order: Sequence[Plant]) -> list[int]:
    """Indices of the planted commits: each is the first measured one of its level, or the one before that."""
    levels = [*(LEVEL for _ in order), LAST_LEVEL]
    for _ in range(MEASURED - sum(levels)):
        levels[chance.randrange(len(levels))] += 1
    starts = [sum(levels[: number + 1]) for number in range(len(order))]
    # An improvement isn't bisected: to be told of its own commit it is measured.
    early = [0 if plant is VECTORIZED else chance.randrange(STRIDE) for plant in order]
    return [STRIDE * start - less for start, less in zip(starts, early, strict=True)]
