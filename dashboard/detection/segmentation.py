"""Penalised segmentation with a bounded loss: where new levels start.

The model is R-FPOP's (Fearnhead and Rigaill, 2019): minimise, over all segmentations, the sum of every
point's loss to its segment's level plus a penalty for each new level. The loss is the biweight, which is
capped, so that one outlier, however wild, can buy no level of its own. A grid of candidate levels stands in
for functional pruning: the costs of all levels are one vector, and a new point is an addition to it.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dashboard.detection.medians import fast_median

Floats = npt.NDArray[np.float64]

# Beyond the cap the loss still rises, by one in all: a point far from both levels belongs to the nearer one,
# however far. At TIE_REACH noises it has half of that behind it, and flattens.
TIE_SLOPE = 0.02
TIE_REACH = 25.0
GRID_STEP = 0.2  # of the noise: at most 0.01 of a squared residual is lost by rounding a level
MOST_CELLS = 1000
BLOCK = 256  # points
KNOWN_COST = 0.7  # of the penalty, for a level that was found before
NEIGHBOURS = np.arange(-2.0, 3.0)


@dataclass(frozen=True, slots=True)
class Loss:
    """The biweight loss min(z², cap), and the penalty that each new level costs in the same unit."""

    cap: float
    penalty: float

    def evaluate(self, z: Floats) -> Floats:
        """The loss of standardised residuals, any shape."""
        far = np.abs(z)
        near = np.minimum(far, TIE_REACH)
        # TIE_SLOPE * near * (2 - near / max(far, TIE_REACH)), in the arrays that are there.
        share = np.divide(near, np.maximum(far, TIE_REACH, out=far), out=far)
        near *= TIE_SLOPE
        near *= np.subtract(2.0, share, out=share)
        losses: Floats = z * z
        np.minimum(losses, self.cap, out=losses)
        losses += near
        return losses


@dataclass(slots=True)
class Grid:
    """Candidate levels: the multiples of a spacing around an origin that hold a point or lie next to one."""

    origin: float
    spacing: float
    cells: Floats

    @classmethod
    def covering(cls, values: Floats, spacing: float) -> Grid:
        """At most a few cells per point, and in all: a level needs several points, so full ones suffice."""
        origin = fast_median(values)
        cells, members = np.unique(np.round((values - origin) / spacing), return_counts=True)
        if len(cells) > MOST_CELLS:
            cells = cells[np.argsort(-members, kind="stable")[:MOST_CELLS]]
        return cls(origin, spacing, np.unique(np.concatenate([cells + k for k in NEIGHBOURS])))

    def levels(self, cells: Floats) -> Floats:
        """The levels in the middle of cells (m,)."""
        return np.asarray(self.origin + cells * self.spacing, dtype=np.float64)

    def around(self, value: float) -> list[float]:
        """The cells that a value asks for."""
        cell = float(np.round((value - self.origin) / self.spacing))
        return [cell + float(k) for k in NEIGHBOURS]


class Segmentation:
    """The cheapest fit of every prefix of a history, kept so that a further point is one step more.

    No level starts before the index `first`, but at one of those in `parts`, which say what part of the
    penalty a level costs there.
    """

    def __init__(self, grid: Grid, loss: Loss, first: int, parts: Mapping[int, float]) -> None:
        self.grid, self.loss, self.first, self.parts = grid, loss, first, parts
        self.levels = grid.levels(grid.cells)
        self.cost = np.zeros(len(self.levels))
        self.start = np.zeros(len(self.levels), dtype=np.int64)
        self.best = 0.0
        self.cells: set[float] = set()  # the grid's cells, once a point came that wasn't there at first
        self.previous = array("q")  # start of the last segment of the best fit up to each point

    def extend(self, values: Floats, noise: Floats) -> None:
        """Points (k,) that follow, with their noise (k,), all of them near levels of the grid."""
        for losses in level_losses(self.levels, values, noise, self.loss):
            t = len(self.previous)
            if t >= self.first or t in self.parts:
                penalty = self.loss.penalty * self.parts.get(t, 1.0)
                fresh = self.cost > self.best + penalty
                np.copyto(self.cost, self.best + penalty, where=fresh)
                np.copyto(self.start, t, where=fresh)
            self.cost += losses
            cheapest = int(self.cost.argmin())
            self.best = float(self.cost[cheapest])
            self.previous.append(int(self.start[cheapest]))

    def add(self, value: float, noise: float) -> None:
        """One more point, wherever it lies: a level that no point was near can't have started before it."""
        self.cells = self.cells or set(self.grid.cells.tolist())
        missing = [cell for cell in self.grid.around(value) if cell not in self.cells]
        if missing:
            self.cells.update(missing)
            self.levels = np.concatenate([self.levels, self.grid.levels(np.array(missing))])
            self.cost = np.concatenate([self.cost, np.full(len(missing), self.best + self.loss.penalty)])
            self.start = np.concatenate([self.start, np.full(len(missing), len(self.previous))])
        self.extend(np.array([value]), np.array([noise]))

    def starts(self) -> list[int]:
        """The indices at which new levels start, ascending, without 0."""
        return trace_starts(self.previous)


def trace_starts(previous: Sequence[int]) -> list[int]:
    """The starts of levels, ascending, without 0, by the start of the last level of each prefix (n,)."""
    found: list[int] = []
    t = previous[-1] if previous else 0
    while t > 0:
        found.append(t)
        t = previous[t - 1]
    return found[::-1]


def segment_levels(values: Floats, noise: Floats, loss: Loss, known: Collection[int] = ()) -> list[int]:
    """The indices at which new levels start, for values (n,) with their noise (n,), both in one unit.

    A level costs less at an index of `known`: it was found before, and isn't given up for a little.
    """
    if len(values) < 2:
        return []
    grid = Grid.covering(values, GRID_STEP * fast_median(noise))
    fit = Segmentation(grid, loss, 1, dict.fromkeys(known, KNOWN_COST))
    fit.extend(values, noise)
    return fit.starts()


def level_losses(levels: Floats, values: Floats, noise: Floats, loss: Loss) -> Iterator[Floats]:
    """For each of values (n,) its loss to every level (m,); computed for a block of points at once."""
    for t in range(0, len(values), BLOCK):
        block = slice(t, t + BLOCK)
        yield from loss.evaluate((values[block, None] - levels) / noise[block, None])
