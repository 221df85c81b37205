"""Logarithmic axes that people can read: plotly's own labels of a short one are hard to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dashboard.charts import units

MOST_VALUES = 8


def decades(low: float, high: float) -> dict[str, object]:
    """An axis from `low` to `high`, both over 0, with ticks at 1, 2 and 5 of each decade; without grid."""
    first, last = np.floor(np.log10(low)), np.ceil(np.log10(high))
    digits = (1, 2, 5) if last - first <= 3 else (1,)
    places = [digit * 10.0**power for power in np.arange(first, last + 1) for digit in digits]
    inside = [place for place in places if low <= place <= high]
    return ticks(inside if len(inside) >= 2 else [low, high])


def at(values: Sequence[float]) -> dict[str, object]:
    """An axis with a tick at each of the values, all over 0, or at decades where they are too many."""
    chosen = sorted(set(values))
    return ticks(chosen) if len(chosen) <= MOST_VALUES else decades(chosen[0], chosen[-1])


def ticks(places: Sequence[float]) -> dict[str, object]:
    text = [units.number(place, 2 if place < 100 else 3) for place in places]
    return {"type": "log", "tickvals": list(places), "ticktext": text, "showgrid": False}
