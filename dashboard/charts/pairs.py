"""The pairs of an experiment: how far the head lay from the base, each time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from dashboard.charts import theme
from dashboard.sentences import numbers

HEIGHT = 240


@dataclass(frozen=True, slots=True)
class DrawnPair:
    """One pair; the values in the metric's unit."""

    number: int
    base: float
    head: float
    base_first: bool
    disturbed: bool


def draw_pairs(
    drawn: Sequence[DrawnPair],
    unit: str,
    ratio: float | None,
    low: float | None,
    high: float | None,
    of_exponents: bool = False,
) -> go.Figure:
    """Draw at least one pair, with the mean ratio head / base and its interval: in percent of the base.

    Of exponents their difference is drawn, and a ratio is its power of e; other values are positive.
    """
    title, suffix = ("head minus base", "") if of_exponents else ("head against base", " %")
    height = math.log if of_exponents else _percent_change
    heights = [
        pair.head - pair.base if of_exponents else _percent_change(pair.head / pair.base) for pair in drawn
    ]
    figure = theme.create_figure(
        [_pair_trace(drawn, heights, unit)],
        HEIGHT,
        xaxis={"title": {"text": "pair"}, "dtick": max(1, len(drawn) // 12), "showgrid": False},
        yaxis={"title": {"text": title}, "ticksuffix": suffix, "rangemode": "tozero"},
    )
    figure.add_hline(y=0, line={"color": theme.MUTED, "width": 1, "dash": "dot"})
    if low is not None and high is not None:
        figure.add_hrect(y0=height(low), y1=height(high), fillcolor=theme.BAND, line_width=0)
    if ratio is not None:
        figure.add_hline(y=height(ratio), line={"color": theme.LINE, "width": 1.5})
    return figure


def _percent_change(ratio: float) -> float:
    return 100 * (ratio - 1)


def _pair_trace(drawn: Sequence[DrawnPair], heights: Sequence[float], unit: str) -> go.Scatter:
    """Which side was measured first is a shape; a disturbed pair is an open cross, as in a trend."""
    return go.Scatter(
        x=[pair.number for pair in drawn],
        y=list(heights),
        mode="markers",
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
    return f"pair {pair.number}: base {base}, head {head}<br>{first} measured first{disturbed}"


def _pair_symbol(pair: DrawnPair) -> str:
    if pair.disturbed:
        return "x-thin-open"
    return "circle" if pair.base_first else "diamond"
