"""The segmentation of many histories at once: a step of all of them costs little more than a step of one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dashboard.detection.medians import fast_median
from dashboard.detection.segmentation import (
    GRID_STEP,
    KNOWN_COST,
    Floats,
    Grid,
    Loss,
    segment_levels,
    trace_starts,
)

# Fewer are segmented one by one.
FEWEST = 3
# Losses that are computed at once: as many as stay in a processor's cache.
AT_ONCE = 1 << 14


@dataclass(frozen=True, slots=True)
class Segmented:
    """A history to be segmented: values (n,) with their noise (n,), the loss, and the starts known before."""

    values: Floats
    noise: Floats
    loss: Loss
    known: Collection[int] = ()


def segment_all(histories: Sequence[Segmented]) -> list[list[int]]:
    """What `segment_levels` finds in each, to the last bit. ValueError where caps of their losses differ."""
    if len({history.loss.cap for history in histories}) > 1:
        raise ValueError("histories are segmented together by losses of one cap")
    together = [history for history in histories if len(history.values) > 1]
    if len(together) < FEWEST:
        return [segment_levels(each.values, each.noise, each.loss, each.known) for each in histories]
    found = iter(segment_together(together))
    return [next(found) if len(history.values) > 1 else [] for history in histories]


def segment_together(histories: Sequence[Segmented]) -> list[list[int]]:
    """The same of p histories of up to n points by one array of costs (p, m): a row is a history's levels."""
    lengths = [len(history.values) for history in histories]
    count, length = len(histories), max(lengths)
    # What comes behind a history's end changes nothing before it.
    values, noise = (
        np.array([np.pad(row, (0, length - len(row)), mode="edge") for row in rows])
        for rows in zip(*((history.values, history.noise) for history in histories), strict=True)
    )
    levels = level_rows(histories)
    penalties = np.empty((length, count))
    for row, history in enumerate(histories):
        penalties[:, row] = history.loss.penalty
        penalties[[t for t in history.known if 0 <= t < length], row] = history.loss.penalty * KNOWN_COST
    cost, start = np.zeros(levels.shape), np.zeros(levels.shape, dtype=np.int32)
    previous = np.zeros((length, count), dtype=np.int32)
    rows, best = np.arange(count), np.zeros(count)
    for t, losses in enumerate(losses_of_steps(levels, values, noise, histories[0].loss)):
        if t:
            cost_of_start = (best + penalties[t])[:, None]
            starts_here = cost > cost_of_start
            np.copyto(cost, cost_of_start, where=starts_here)
            np.copyto(start, t, where=starts_here)
        cost += losses
        cheapest = cost.argmin(axis=1)
        best = cost[rows, cheapest]
        previous[t] = start[rows, cheapest]
    return [trace_starts(column[:own]) for column, own in zip(previous.T.tolist(), lengths, strict=True)]


def level_rows(histories: Sequence[Segmented]) -> Floats:
    """The levels (p, m) of each history's grid; of a smaller grid the last one is repeated.

    A repeated level costs what it costs the first time, which is found before it.
    """
    of_each = []
    for history in histories:
        grid = Grid.covering(history.values, GRID_STEP * fast_median(history.noise))
        of_each.append(grid.levels(grid.cells))
    most = max(map(len, of_each))
    return np.array([np.pad(levels, (0, most - len(levels)), mode="edge") for levels in of_each])


def losses_of_steps(levels: Floats, values: Floats, noise: Floats, loss: Loss) -> Iterator[Floats]:
    """For each of n points (p, n) the losses (p, m) to every level, of a block of points at once."""
    block = max(1, AT_ONCE // levels.size)
    for t in range(0, values.shape[1], block):
        part = slice(t, t + block)
        yield from loss.evaluate((values.T[part, :, None] - levels) / noise.T[part, :, None])
