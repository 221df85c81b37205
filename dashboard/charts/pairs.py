"""The pairs of a confirmation: how far the bad commit lay from the good one, each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from dashboard.charts import theme, units

HEIGHT = 240


@dataclass(frozen=True, slots=True)
class DrawnPair:
    """One pair; the values in the metric's unit."""

    number: int
    good: float
    bad: float
    good_first: bool
    disturbed: bool

    @property
    def percent(self) -> float:
        return 100 * (self.bad / self.good - 1)


def pairs(
    drawn: Sequence[DrawnPair], unit: str, ratio: float | None, low: float | None, high: float | None
) -> go.Figure:
    """Draw at least one pair of positive values, with the mean ratio bad / good and its interval."""
    figure = theme.figure(
        [_dots(drawn, unit)],
        HEIGHT,
        xaxis={"title": {"text": "pair"}, "dtick": max(1, len(drawn) // 12), "showgrid": False},
        yaxis={"title": {"text": "bad against good"}, "ticksuffix": " %", "rangemode": "tozero"},
    )
    figure.add_hline(y=0, line={"color": theme.MUTED, "width": 1, "dash": "dot"})
    if low is not None and high is not None:
        figure.add_hrect(y0=_percent(low), y1=_percent(high), fillcolor=theme.BAND, line_width=0)
    if ratio is not None:
        figure.add_hline(y=_percent(ratio), line={"color": theme.LINE, "width": 1.5})
    return figure


def _percent(ratio: float) -> float:
    return 100 * (ratio - 1)


def _dots(drawn: Sequence[DrawnPair], unit: str) -> go.Scatter:
    """Which commit was measured first is a shape; a disturbed pair is an open cross, as in a trend."""
    return go.Scatter(
        x=[pair.number for pair in drawn],
        y=[pair.percent for pair in drawn],
        mode="markers",
        marker={
            "size": 9,
            "color": [theme.MUTED if pair.disturbed else theme.LINE for pair in drawn],
            "symbol": [_symbol(pair) for pair in drawn],
            "line": {"width": [1.5 if pair.disturbed else 0 for pair in drawn]},
        },
        text=[
            f"pair {pair.number}: {units.quantity(pair.good, unit)} good, "
            f"{units.quantity(pair.bad, unit)} bad<br>{'good' if pair.good_first else 'bad'} measured first"
            + ("<br>disturbed by other work: not weighed" if pair.disturbed else "")
            for pair in drawn
        ],
        hovertemplate="%{text}<extra></extra>",
    )


def _symbol(pair: DrawnPair) -> str:
    if pair.disturbed:
        return "x-thin-open"
    return "circle" if pair.good_first else "diamond"
