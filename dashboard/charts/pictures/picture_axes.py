"""An axis of a page's figure in a picture: where its values lie, and what is written along it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from dashboard.charts.axes import round_ticks
from dashboard.sentences.formatting import numbers

# A range that the figure doesn't name reaches beyond the values by this part; where an end is no 0, at both.
ROOM, ROOM_BOTH = 0.05, 0.02
MINUTE, HOUR, DAY = 60, 3600, 86400
DATE_STEPS = (
    *(minutes * MINUTE for minutes in (10, 20, 30)),
    *(hours * HOUR for hours in (1, 2, 3, 6, 12)),
    *(days * DAY for days in (1, 2, 4, 7, 14, 28, 91, 182, 365)),
)
# A date takes more room than a number.
MOST_DATES = 6


@dataclass(frozen=True, slots=True)
class PictureAxis:
    """From `low` to `high`: numbers, logarithms to the base of ten, or seconds since 1970."""

    layout: Mapping[str, Any]
    low: float
    high: float

    @classmethod
    def of_values(cls, layout: Mapping[str, Any], values: Sequence[Any]) -> PictureAxis:
        """As the figure's `layout` says, else wide enough for the values of each trace."""
        kind = layout.get("type")
        if "range" in layout:
            # Unlike a value, the range of a logarithmic axis is told in logarithms.
            ends = _as_numbers(layout["range"], None if kind == "log" else kind)
            return cls(layout, float(ends[0]), float(ends[1]))
        known = np.concatenate([_as_numbers(part, kind) for part in values])
        known = known[np.isfinite(known)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        if layout.get("rangemode") == "tozero":
            low, high = min(low, 0.0), max(high, 0.0)
        if kind in ("log", "date"):
            room = ROOM_BOTH * (high - low) or 1.0
            return cls(layout, low - room, high + room)
        return cls(layout, low, high + (ROOM * (high - low) or 1.0))

    def shares(self, values: Any) -> np.ndarray:
        """How far along the axis each value lies, from 0 to 1; NaN where one is missing."""
        return (_as_numbers(values, self.layout.get("type")) - self.low) / (self.high - self.low)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """(share, label): the figure's own, or round values, `most` of them; what is counted is whole."""
        if self.layout.get("type") == "date":
            return self._date_ticks()
        if "tickvals" in self.layout:
            shares = self.shares(self.layout["tickvals"]).tolist()
            named = zip(shares, self.layout["ticktext"], strict=True)
            return [(share, str(label)) for share, label in named if 0 <= share <= 1]
        values = round_ticks(self.low, self.high, most)
        if self.layout.get("dtick"):
            values = [value for value in values if value.is_integer() and value >= self.layout["tick0"]]
        suffix = self.layout.get("ticksuffix", "")
        labels = [f"{numbers.format_number(value)}{suffix}" for value in values]
        return list(zip(self.shares(values).tolist(), labels, strict=True))

    def _date_ticks(self) -> list[tuple[float, str]]:
        span = self.high - self.low
        step = next((step for step in DATE_STEPS if span / step <= MOST_DATES), math.ceil(span / MOST_DATES))
        form = "%Y-%m-%d" if step >= DAY else "%Y-%m-%d %H:%M"
        seconds = range(math.ceil(self.low / step) * step, math.floor(self.high) + 1, step)
        return [
            ((second - self.low) / span, datetime.fromtimestamp(second, UTC).strftime(form))
            for second in seconds
        ]


def _as_numbers(values: Any, kind: str | None) -> np.ndarray:
    if kind == "date":
        return np.array([moment.timestamp() for moment in values], dtype=np.float64)
    found = np.asarray(values, dtype=np.float64)
    return np.log10(found) if kind == "log" else found
