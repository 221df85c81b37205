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
    stretches = np.array_split(np.arange(len(values)), max(1, most // 3))
    kept = [index for stretch in stretches for index in _extreme_indices(values, stretch)]
    return np.array(sorted(set(kept)))


def _extreme_indices(values: np.ndarray, stretch: np.ndarray) -> list[int]:
    inside = values[stretch]
    missing = np.isnan(inside)
    gap = [int(stretch[np.argmax(missing)])] if missing.any() else []
    if missing.all():
        return gap
    return [int(stretch[np.nanargmin(inside)]), int(stretch[np.nanargmax(inside)]), *gap]
