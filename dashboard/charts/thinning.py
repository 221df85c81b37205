"""Fewer points for the same drawing: no reading that stands out is lost."""

from __future__ import annotations

import numpy as np


def thin_to_extremes(values: np.ndarray, most: int) -> np.ndarray:
    """Return the indices (k,) of at most `most` of the values (n,), in their order; all where they are fewer.

    Of each stretch the lowest and the highest stay, as a drawing of all would show them; where a stretch has
    readings that are missing (NaN), so has what is left of it.
    """
    if len(values) <= most:
        return np.arange(len(values))
    size = -(-3 * len(values) // max(1, most - 2))
    # Rows of one stretch each; the last one is filled up with its own last value.
    places = np.minimum(np.arange(-(-len(values) // size) * size), len(values) - 1).reshape(-1, size)
    missing = np.isnan(values[places])
    lowest = np.where(missing, np.inf, values[places]).argmin(axis=1)
    highest = np.where(missing, -np.inf, values[places]).argmax(axis=1)
    gaps = missing.argmax(axis=1)
    rows = np.arange(len(places))
    kept = [places[rows, lowest], places[rows, highest], places[rows, gaps][missing.any(axis=1)]]
    return np.unique(np.concatenate(kept))


def thin_line(values: np.ndarray, most: int, kept: np.ndarray) -> np.ndarray:
    """Return the indices, in their order, of about `most` of the values (n,), and of all that are `kept`.

    Of each stretch the first, the last, the lowest and the highest stay, so that the line has the same
    extremes and the same ends wherever one looks. All where they are few enough. The values are finite.
    """
    count = len(values)
    if count <= most:
        return np.arange(count)
    edges = np.linspace(0, count, max(1, most // 4) + 1).astype(int)
    starts = np.unique(edges[:-1])
    ends = np.append(starts[1:], count) - 1
    lengths = ends - starts + 1
    lowest = np.flatnonzero(values == np.repeat(np.minimum.reduceat(values, starts), lengths))
    highest = np.flatnonzero(values == np.repeat(np.maximum.reduceat(values, starts), lengths))
    # Of equal ones the first of the lowest, and the last of the highest.
    extremes = [
        lowest[np.searchsorted(lowest, starts)],
        highest[np.searchsorted(highest, ends, side="right") - 1],
    ]
    return np.unique(np.concatenate([starts, ends, *extremes, np.asarray(kept, dtype=int)]))
