"""The pairs of a confirmation: how far the bad commit lay from the good one, each time."""

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
    good: float
    bad: float
    good_first: bool
    disturbed: bool


def draw_pairs(
    drawn: Sequence[DrawnPair],
    unit: str,
    ratio: float | None,
    low: float | None,
    high: float | None,
    of_exponents: bool = False,
) -> go.Figure:
    """Draw at least one pair, with the mean ratio bad / good and its interval: in percent of the good value.

    Of exponents their difference is drawn, and a ratio is its power of e; other values are positive.
    """
    title, suffix = ("bad minus good", "") if of_exponents else ("bad against good", " %")
    height = math.log if of_exponents else _percent_change
    heights = [
        pair.bad - pair.good if of_exponents else _percent_change(pair.bad / pair.good) for pair in drawn
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
    """Which commit was measured first is a shape; a disturbed pair is an open cross, as in a trend."""
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
    good, bad = numbers.format_quantity(pair.good, unit), numbers.format_quantity(pair.bad, unit)
    first = "good" if pair.good_first else "bad"
    disturbed = "<br>disturbed by other work: not weighed" if pair.disturbed else ""
    return f"pair {pair.number}: {good} good, {bad} bad<br>{first} measured first{disturbed}"


def _pair_symbol(pair: DrawnPair) -> str:
    if pair.disturbed:
        return "x-thin-open"
    return "circle" if pair.good_first else "diamond"
