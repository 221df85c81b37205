"""Where the planted changes go and how large they are meant to be, drawn from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

from .plants import KEPT, LISTED, RANKED, SUMMED, VECTORIZED, Plant

COMMITS = 16
SMALL = (0.25, 0.40)
"""Step time of the smaller time regression, as a share of the step before it."""

LARGE = (0.60, 1.50)
"""Step time of the larger one."""

MEMORY = (0.20, 0.30)
"""Peak memory of the memory regression, as a share of the peak before it."""

IMPROVEMENT = 0.20
"""The improvement takes at least this share off the step."""

# Drawn well inside the promise, so that what is measured afterwards lies inside it too.
DRAWN_SMALL = (0.29, 0.34)
DRAWN_LARGE = (0.75, 1.30)
DRAWN_MEMORY = (0.23, 0.27)
LEAST_IMPROVEMENT = 0.23

FIRST_NEUTRAL = 4
BETWEEN = 2
# The one commit that is left over lies more often after the last plant, whose level it lengthens.
SPARE_WEIGHTS = (1, 1, 1, 1, 2)


@dataclass(frozen=True)
class Planned:
    """A planted change at its place. `size` is the share of step time or memory that it is meant to add."""

    plant: Plant
    position: int
    size: float


def draw(chance: random.Random, improvable: float) -> list[Planned]:
    """Draw positions, order and sizes. `improvable` is the share of the first commit's step that the
    improvement saves: after large regressions the same saving is a small one, so some orders are out."""
    positions = _positions(chance)
    replay = chance.choice((RANKED, SUMMED))
    while True:
        order = [replay, LISTED, VECTORIZED, KEPT]
        chance.shuffle(order)
        small = chance.uniform(*DRAWN_SMALL)
        large = chance.uniform(*DRAWN_LARGE)
        grows = {replay: small, LISTED: large} if chance.random() < 0.5 else {replay: large, LISTED: small}
        before = 1.0
        for plant in order[: order.index(VECTORIZED)]:
            before *= 1 + grows.get(plant, 0.0)
        # With no change before it the improvement is what it is.
        if before == 1.0 or improvable / before >= LEAST_IMPROVEMENT:
            break
    sizes = {**grows, VECTORIZED: -improvable / before, KEPT: chance.uniform(*DRAWN_MEMORY)}
    return [Planned(plant, position, sizes[plant]) for plant, position in zip(order, positions, strict=True)]


def _positions(chance: random.Random) -> list[int]:
    """Indices of the four planted commits among COMMITS."""
    gaps = [FIRST_NEUTRAL, BETWEEN, BETWEEN, BETWEEN, 1]
    gaps[chance.choices(range(5), weights=SPARE_WEIGHTS)[0]] += 1
    positions, at = [], 0
    for gap in gaps[:4]:
        at += gap
        positions.append(at)
        at += 1
    return positions
