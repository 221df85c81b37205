"""A forest plot: an interval for each row on one logarithmic axis, drawn as SVG by a template.

Widths are per cent of the cell that holds a row's drawing, so that it needs no script and fits a phone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dashboard.sentences import numbers

# What lies beyond is drawn at the edge, with an arrow: one row must not flatten all others.
WIDEST = math.log(16)
NARROWEST = math.log(1.05)
ROOM = 1.08
# Around each side, in per cent, so that a mark at the edge is whole.
MARGIN = 4.0
TICKS = (1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0, 10.0)


@dataclass(frozen=True, slots=True)
class ForestRow:
    """`x`, `start` and `end` in per cent of the drawing; `is_beyond`: the value lies off the axis."""

    x: float
    start: float
    end: float
    is_beyond: bool


@dataclass(frozen=True, slots=True)
class ForestTick:
    x: float
    label: str


@dataclass(frozen=True, slots=True)
class ForestAxis:
    """From ratios to per cent of the width; `reach`: the logarithm at both edges."""

    reach: float

    @classmethod
    def of_ratios(cls, ratios: Iterable[float]) -> ForestAxis:
        """Wide enough for most of these, and not narrower than 5 % on each side."""
        largest = max((abs(math.log(ratio)) for ratio in ratios if ratio > 0), default=0.0)
        return cls(min(max(largest * ROOM, NARROWEST), WIDEST))

    def position(self, ratio: float) -> float:
        share = math.log(ratio) / self.reach if ratio > 0 else -1.0
        return round(50 + (50 - MARGIN) * min(max(share, -1.0), 1.0), 2)

    def place_row(self, ratio: float, low: float | None, high: float | None) -> ForestRow:
        start = self.position(ratio if low is None else low)
        end = self.position(ratio if high is None else high)
        beyond = ratio <= 0 or abs(math.log(ratio)) > self.reach
        return ForestRow(self.position(ratio), start, end, beyond)

    def ticks(self) -> list[ForestTick]:
        """No difference, and one size on both sides of it, the same factor."""
        inside = [size for size in TICKS if math.log(size) <= 0.8 * self.reach]
        size = inside[-1] if inside else TICKS[0]
        return [
            ForestTick(self.position(1 / size), _ratio_label(1 / size)),
            ForestTick(self.position(1.0), "0"),
            ForestTick(self.position(size), _ratio_label(size)),
        ]


def _ratio_label(ratio: float) -> str:
    """The change that it means, in whole percents: `+50 %`."""
    percent = round(100 * (ratio - 1))
    sign = "+" if percent > 0 else numbers.MINUS
    return f"{sign}{abs(percent)} %"
