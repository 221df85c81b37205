"""Axes that people can read: round ticks, and logarithmic ones, whose short ones plotly labels badly."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dashboard.sentences.formatting import numbers

MOST_VALUES = 8


def round_ticks(low: float, high: float, most: int) -> list[float]:
    """A few round numbers between both ends, about as many as `most`."""
    step = 10 ** math.floor(math.log10((high - low) / most))
    step *= next((factor for factor in (1, 2, 5) if (high - low) / (factor * step) <= most), 10)
    first = math.ceil(low / step)
    return [round(index * step, 12) for index in range(first, math.floor(high / step) + 1)]


def decade_axis(low: float, high: float) -> dict[str, object]:
    """An axis from `low` to `high`, both over 0, with ticks at 1, 2 and 5 of each decade; without grid."""
    first, last = np.floor(np.log10(low)), np.ceil(np.log10(high))
    digits = (1, 2, 5) if last - first <= 3 else (1,)
    values = [digit * 10.0**power for power in np.arange(first, last + 1) for digit in digits]
    inside = [value for value in values if low <= value <= high]
    return log_axis(inside if len(inside) >= 2 else [low, high])


def value_axis(values: Sequence[float]) -> dict[str, object]:
    """An axis with a tick at each of the values, all over 0, or at decades where they are too many."""
    distinct = sorted(set(values))
    return log_axis(distinct) if len(distinct) <= MOST_VALUES else decade_axis(distinct[0], distinct[-1])


def log_axis(ticks: Sequence[float]) -> dict[str, object]:
    labels = [numbers.format_number(tick, 2 if tick < 100 else 3) for tick in ticks]
    return {"type": "log", "tickvals": list(ticks), "ticktext": labels, "showgrid": False}
