"""The pairs of an experiment: how far the head lay from the base each time, and what was known after each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dashboard.charts import theme
from dashboard.sentences.formatting import numbers

HEIGHT = 280
MOST_TICKS = 12
# An axis reaches to 0 unless that leaves the pairs less than this part of it.
LEAST_PART = 1 / 6
ROOM = 0.08
# In pairs: how far the newest interval is drawn beyond the last one, and what is free on both sides.
AFTER_LAST, BESIDE = 0.5, 0.6

# What is drawn of a pair: the head in per cent of the base, or the difference of exponents, or of values that
# have no ratios.
Effect = Literal["ratio", "exponent", "difference"]


@dataclass(frozen=True, slots=True)
class EffectEstimate:
    """The effect with its interval: a ratio (of exponents e ** difference), or a difference in the unit."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class DrawnPair:
    """One pair, the values in the metric's unit, and what it and those before it say together."""

    number: int
    base: float
    head: float
    base_first: bool
    disturbed: bool
    known: EffectEstimate | None = None


@dataclass(frozen=True, slots=True)
class PairAxis:
    """From values to heights in the figure."""

    effect: Effect
    unit: str
    size: float

    @classmethod
    def of_pairs(cls, effect: Effect, unit: str, drawn: Sequence[DrawnPair]) -> PairAxis:
        if effect != "difference":
            return cls(effect, "%" if effect == "ratio" else "", 1.0)
        scaled = numbers.choose_scale(unit, max(abs(pair.head - pair.base) for pair in drawn))
        return cls(effect, scaled.unit, scaled.size)

    @property
    def title(self) -> str:
        if self.effect == "ratio":
            return "head against base"
        return f"head minus base{f', {self.unit}' if self.unit else ''}"

    def pair_height(self, pair: DrawnPair) -> float:
        if self.effect == "ratio":
            return 100 * (pair.head / pair.base - 1)
        return (pair.head - pair.base) / self.size

    def height(self, known: float) -> float:
        match self.effect:
            case "ratio":
                return 100 * (known - 1)
            case "exponent":
                return math.log(known)
        return known / self.size


def draw_pairs(
    drawn: Sequence[DrawnPair], unit: str, effect: Effect = "ratio", known: EffectEstimate | None = None
) -> theme.Figure:
    """Draw at least one pair, with the mean and its interval after each; `known` is that of all.

    Where only `known` is, as of pairs that were measured before theirs were kept, it is drawn over all.
    """
    axis = PairAxis.of_pairs(effect, unit, drawn)
    heights = [axis.pair_height(pair) for pair in drawn]
    low, high = _axis_range(drawn, heights, axis, known)
    figure = theme.create_figure(
        [*_interval_traces(drawn, axis, known), _pair_trace(drawn, heights, unit, (low, high))],
        HEIGHT,
        xaxis={
            "title": {"text": "pair"},
            "range": [drawn[0].number - BESIDE, drawn[-1].number + BESIDE],
            "dtick": max(1, math.ceil(len(drawn) / MOST_TICKS)),
            "tick0": drawn[0].number,
            "showgrid": False,
        },
        yaxis={
            "title": {"text": axis.title},
            "ticksuffix": " %" if effect == "ratio" else "",
            "range": [low, high],
        },
    )
    theme.add_level_line(figure, 0)
    return figure


def _axis_range(
    drawn: Sequence[DrawnPair], heights: Sequence[float], axis: PairAxis, known: EffectEstimate | None
) -> tuple[float, float]:
    """Around the pairs that are weighed and the newest interval: early ones are many times as wide."""
    shown = [height for pair, height in zip(drawn, heights, strict=True) if not pair.disturbed]
    if known is not None:
        shown += [axis.height(known.low), axis.height(known.high)]
    shown = shown or list(heights)
    low, high = min(shown), max(shown)
    nearest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    if high - low >= LEAST_PART * (high - low + nearest):
        low, high = min(low, 0.0), max(high, 0.0)
    room = ROOM * ((high - low) or abs(high) or 1.0)
    return low - room, high + room


def _interval_traces(
    drawn: Sequence[DrawnPair], axis: PairAxis, known: EffectEstimate | None
) -> list[theme.Trace]:
    steps = [(float(pair.number), pair.known) for pair in drawn if pair.known is not None]
    if not steps and known is not None:
        steps = [(float(drawn[0].number), known)]
    if not steps:
        return []
    # What is known after the last pair holds on: an interval that only that one has is seen too.
    steps.append((drawn[-1].number + AFTER_LAST, steps[-1][1]))
    numbers_, after = [number for number, _ in steps], [found for _, found in steps]
    edge = {"x": numbers_, "mode": "lines", "hoverinfo": "skip"}
    return [
        theme.scatter_trace(
            **edge, y=[axis.height(found.low) for found in after], line={"width": 0}, name="low"
        ),
        theme.scatter_trace(
            **edge,
            y=[axis.height(found.high) for found in after],
            line={"width": 0},
            fill="tonexty",
            fillcolor=theme.BAND,
            name="interval",
        ),
        theme.scatter_trace(
            **edge,
            y=[axis.height(found.value) for found in after],
            line={"color": theme.LINE, "width": 1.5},
            name="mean",
        ),
    ]


def _pair_trace(
    drawn: Sequence[DrawnPair], heights: Sequence[float], unit: str, span: tuple[float, float]
) -> theme.Trace:
    """Which side was measured first is a shape; a disturbed pair is hollow, at the edge if beyond."""
    low, high = span
    return theme.scatter_trace(
        x=[pair.number for pair in drawn],
        y=[min(max(height, low), high) for height in heights],
        mode="markers",
        name="pairs",
        cliponaxis=False,
        marker={
            "size": 9,
            "color": [theme.MUTED if pair.disturbed else theme.LINE for pair in drawn],
            "symbol": [_pair_symbol(pair) for pair in drawn],
            "line": {"width": [1.5 if pair.disturbed else 0 for pair in drawn]},
        },
        text=[_pair_hover(pair, unit) for pair in drawn],
        hovertemplate="%{text}<extra></extra>",
    )


def _pair_hover(pair: DrawnPair, unit: str) -> str:
    base, head = numbers.format_quantity(pair.base, unit), numbers.format_quantity(pair.head, unit)
    first = "base" if pair.base_first else "head"
    disturbed = "<br>disturbed by other work: not weighed" if pair.disturbed else ""
    return f"pair {pair.number}: {base} base, {head} head<br>{first} measured first{disturbed}"


def _pair_symbol(pair: DrawnPair) -> str:
    shape = "circle" if pair.base_first else "diamond"
    return f"{shape}-open" if pair.disturbed else shape
