"""A forest plot: an interval for each row on one logarithmic axis, drawn as SVG by a template.

Places are per cent of the cell that holds a row's drawing, so that it needs no script and fits a phone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dashboard.sentences.formatting import numbers

# What lies beyond is drawn at the edge, with an arrow: a single row must not flatten all others.
WIDEST = math.log(16)
# Noise must not look like an event: so far the axis reaches at least, on the side where most lies.
NARROWEST = math.log(1.05)
# Of the longer side: so much the other one has at least, for `no difference` to stand clear of the edge.
LEAST_SIDE = 0.15
ROOM = 1.05
# Around each side, in per cent, so that a mark at the edge is whole.
MARGIN = 3.0
TICKS = (1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0, 10.0)
# A tick's label has room behind this part of its side.
LABELLED = 0.25


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
    """From ratios to per cent of the width; `below` and `above`: how far it reaches from no difference, as
    logarithms of ratios."""

    below: float
    above: float

    @classmethod
    def of_ratios(cls, ratios: Iterable[float]) -> ForestAxis:
        """Wide enough for all of these, within bounds."""
        sizes = [math.log(ratio) for ratio in ratios if ratio > 0]
        below, above = (
            min(max([0.0, *reach]) * ROOM, WIDEST) for reach in ([-size for size in sizes], sizes)
        )
        least = LEAST_SIDE * max(below, above, NARROWEST)
        return cls(max(below, least), max(above, least if below >= NARROWEST else NARROWEST))

    def position(self, ratio: float) -> float:
        size = math.log(ratio) if ratio > 0 else -self.below
        share = (min(max(size, -self.below), self.above) + self.below) / (self.below + self.above)
        return round(MARGIN + (100 - 2 * MARGIN) * share, 2)

    def place_row(self, ratio: float, low: float | None, high: float | None) -> ForestRow:
        start = self.position(ratio if low is None else low)
        end = self.position(ratio if high is None else high)
        beyond = ratio <= 0 or not -self.below <= math.log(ratio) <= self.above
        return ForestRow(self.position(ratio), start, end, beyond)

    def ticks(self) -> list[ForestTick]:
        """No difference, and on each side that has room for it the largest of TICKS."""
        ratios = [1.0]
        for reach, sign in ((self.below, -1), (self.above, 1)):
            whole = LABELLED * (self.below + self.above)
            fitting = [size for size in TICKS if whole <= math.log(size) <= 0.95 * reach]
            ratios += [fitting[-1] ** sign] if fitting else []
        return [ForestTick(self.position(ratio), _ratio_label(ratio)) for ratio in sorted(ratios)]


def _ratio_label(ratio: float) -> str:
    """The change that it means, in whole percents: `+50 %`."""
    percent = round(100 * (ratio - 1))
    if not percent:
        return "0"
    return f"{'+' if percent > 0 else numbers.MINUS}{abs(percent)} %"
