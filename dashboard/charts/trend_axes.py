"""Where positions and values lie in a trend: commits or dates, and quantities or changes in percent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from dashboard.charts import theme
from dashboard.sentences.formatting import numbers

MOST_LABELS = 8
# What is nearer to an end of the axis than this share of it has its label beside it, where it isn't cut off.
EDGE = 0.1
# Above and below the drawn values, as a share of their range; arrows need the room.
ARROW_ROOM = 0.28
# What would make the drawing higher than so many times the values' own height isn't drawn in it.
FARTHEST = 2.5
# The height of the drawing stands for at least this share of the values.
LEAST_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class ValueAxis:
    """Values of a unit, divided by `size`; with a `reference` their change from it, in percent."""

    unit: str
    size: float
    title: str
    reference: float | None = None

    def scale_values(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        drawn = np.asarray(values, dtype=np.float64)
        if self.reference is None:
            return drawn / self.size
        return 100 * (drawn / self.reference - 1)

    def scale_value(self, value: float) -> float:
        return float(self.scale_values([value])[0])

    def find_range(self, values: Sequence[float], far: Sequence[float]) -> list[float]:
        """Of the axis, with room for the arrows; a flat series is drawn flat, not as mountains of noise.

        `values` are those that count, at least one; `far` are others, which widen it where they are near.
        """
        drawn = self.scale_values(values)
        low, high = float(drawn.min()), float(drawn.max())
        share = 100.0 if self.reference is not None else max(abs(low), abs(high))
        least = LEAST_SHARE * share or 1.0
        if high - low < least:
            middle = (high + low) / 2
            low, high = middle - least / 2, middle + least / 2
        height = high - low
        for value in self.scale_values(far):
            if max(high, value) - min(low, value) <= FARTHEST * height:
                low, high = min(low, float(value)), max(high, float(value))
        room = ARROW_ROOM * (high - low)
        # Zero is a floor for what can't be negative.
        has_floor = low >= 0 and self.reference is None
        return [max(0.0, low - room) if has_floor else low - room, high + room]


def choose_value_axis(unit: str, largest: float, reference: float | None = None) -> ValueAxis:
    """`reference` isn't 0."""
    scaled = numbers.choose_scale(unit, largest)
    if reference is None:
        return ValueAxis(unit, scaled.size, scaled.unit)
    return ValueAxis(unit, scaled.size, "change, %", reference)


@dataclass(frozen=True, slots=True)
class CommitAxis:
    """Positions, or the dates of their commits in milliseconds since 1970, as plotly has them."""

    positions: np.ndarray
    places: np.ndarray
    by_date: bool

    def place_positions(self, positions: Sequence[float] | np.ndarray) -> np.ndarray:
        """Where these positions lie; between two commits in proportion."""
        wanted = np.asarray(positions, dtype=np.float64)
        return np.interp(wanted, self.positions, self.places) if self.by_date else wanted

    def place_position(self, position: float) -> float:
        return float(self.place_positions([position])[0])

    @property
    def ends(self) -> tuple[float, float]:
        """With room at both ends."""
        low, high = float(self.places.min()), float(self.places.max())
        least = 0.5 * 86_400_000 if self.by_date else 0.6
        room = max(least, 0.025 * (high - low))
        return low - room, high + room

    def label_anchor(self, position: float) -> str:
        """Which part of a label stands at its place: `left`, `center` or `right`."""
        low, high = self.ends
        share = (self.place_position(position) - low) / (high - low)
        return "left" if share < EDGE else "right" if share > 1 - EDGE else "center"


def commit_axis(dates: Mapping[int, datetime | None], *, by_date: bool) -> CommitAxis:
    """`dates` by position, at least one; those are needed for an axis of dates alone."""
    positions = np.array(sorted(dates), dtype=np.float64)
    if not by_date:
        return CommitAxis(positions, positions, by_date=False)
    known = [dates[int(position)] for position in positions]
    return CommitAxis(positions, count_milliseconds(known), by_date=True)


def count_milliseconds(dates: Sequence[datetime | None]) -> np.ndarray:
    return np.array([np.nan if date is None else 1000 * date.timestamp() for date in dates])


def commit_ticks(names: Mapping[int, str]) -> dict[str, object]:
    """A few commits by name, evenly spread, the newest among them; `names` by position."""
    positions = sorted(names, reverse=True)
    # By distance: of commits that lie side by side in a long range only one has room for its name.
    least = (positions[0] - positions[-1] + 1) / MOST_LABELS if positions else 0
    labelled: list[int] = []
    for position in positions:
        if not labelled or labelled[-1] - position >= least:
            labelled.append(position)
    labelled.reverse()
    return {
        "tickvals": labelled,
        "ticklabeloverflow": "allow",
        "ticktext": [theme.escape_markup(names[position][:7]) for position in labelled],
        "tickfont": {"family": theme.MONO, "size": 11, "color": theme.MUTED},
    }
