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
