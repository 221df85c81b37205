"""Penalised segmentation with a bounded loss: where do new levels start?

The model is R-FPOP's (Fearnhead and Rigaill, 2019): minimise, over all segmentations, the sum of every
point's loss to its segment's level plus a penalty for each new level. The loss is the biweight, which is
capped, so that one outlier, however wild, can buy no level of its own. A grid of candidate levels stands in
for functional pruning: the costs of all levels are one vector, and a new point is an addition to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# Beyond the cap the loss still rises a little: a point far from both levels belongs to the nearer one.
TIE_SLOPE = 0.02
TIE_REACH = 50.0
GRID_STEP = 0.2  # of the noise: at most 0.01 of a squared residual is lost by rounding a level
MOST_CELLS = 1000
BLOCK = 256  # points


@dataclass(frozen=True, slots=True)
class Loss:
    """The biweight loss min(z², cap), and the penalty that each new level costs in the same unit."""

    cap: float
    penalty: float

    def of(self, z: Floats) -> Floats:
        """The loss of standardised residuals, any shape."""
        tie: Floats = TIE_SLOPE * np.minimum(np.abs(z), TIE_REACH)
        return np.minimum(z * z, self.cap) + tie


def candidate_levels(values: Floats, spacing: float) -> Floats:
    """The grid cells that hold a point or lie next to one that does, ascending.

    At most a few per point, and in all: a level needs several points, so the fullest cells are enough.
    """
    origin = float(np.median(values))
    cells, members = np.unique(np.round((values - origin) / spacing), return_counts=True)
    if len(cells) > MOST_CELLS:
        cells = cells[np.argsort(-members, kind="stable")[:MOST_CELLS]]
    around = np.unique(np.concatenate([cells + k for k in range(-2, 3)]))
    return np.asarray(origin + around * spacing, dtype=np.float64)


def segment(values: Floats, noise: Floats, loss: Loss, first: int = 1) -> list[int]:
    """The indices at which new levels start, for values (n,) with their noise (n,), both in one unit.

    No level starts before the index `first`.
    """
    if len(values) < 2:
        return []
    levels = candidate_levels(values, GRID_STEP * float(np.median(noise)))
    cost = np.zeros(len(levels))
    start = np.zeros(len(levels), dtype=np.int64)
    best = 0.0
    previous = np.zeros(len(values), dtype=np.int64)  # start of the last segment of the best fit up to t
    for t, losses in enumerate(losses_to(levels, values, noise, loss)):
        if t >= first:
            fresh = cost > best + loss.penalty
            np.copyto(cost, best + loss.penalty, where=fresh)
            np.copyto(start, t, where=fresh)
        cost += losses
        cheapest = int(cost.argmin())
        best, previous[t] = float(cost[cheapest]), start[cheapest]
    return backtrack(previous)


def losses_to(levels: Floats, values: Floats, noise: Floats, loss: Loss) -> Iterator[Floats]:
    """For each of values (n,) its loss to every level (m,); computed for a block of points at once."""
    for t in range(0, len(values), BLOCK):
        block = slice(t, t + BLOCK)
        yield from loss.of((values[block, None] - levels) / noise[block, None])


def backtrack(previous: Integers) -> list[int]:
    """Segment starts, ascending, without 0, from the start of the last segment of each prefix."""
    starts: list[int] = []
    t = int(previous[-1])
    while t > 0:
        starts.append(t)
        t = int(previous[t - 1])
    return starts[::-1]
