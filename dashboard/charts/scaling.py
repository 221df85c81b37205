"""How a time grows with a swept parameter: both axes logarithmic, so that a power is a straight line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.charts import axes, theme, units

HEIGHT = 320
MOST_PHASES = 5

# (value of the parameter, seconds), one per measured process.
Points = Sequence[tuple[float, float]]


def growth(
    points: Points,
    exponent: float | None,
    parameter: str,
    *,
    reference: float,
    title: str,
    phases: Mapping[str, Points] | None = None,
) -> go.Figure:
    """At least one point over 0; `reference` is the exponent that is expected, drawn beside the fit.

    `phases` are drawn thinner, those that take longest at the largest value.
    """
    usable = [(value, seconds) for value, seconds in points if value > 0 and seconds > 0]
    # By the middle of the axis: an end of it would make the other one a small fraction.
    scaled = units.scale("s", math.exp(float(np.mean([math.log(seconds) for _, seconds in usable]))))
    parts = _longest(phases or {})
    # A line between two values of a log-log chart is straight: its ends are enough.
    traces = [
        *(_phase(path, found, scaled, order) for order, (path, found) in enumerate(parts.items())),
        *_line(usable, reference, scaled, None),
        *(_line(usable, exponent, scaled, exponent) if exponent is not None else ()),
        _measured(usable, parameter, scaled),
    ]
    seconds = [y for trace in traces for y in trace.y if y > 0]
    return theme.figure(
        traces,
        HEIGHT,
        showlegend=True,
        xaxis={"title": {"text": theme.plain(parameter)}, **axes.at([value for value, _ in usable])},
        yaxis={"title": {"text": f"{scaled.unit} {title}"}, **_height(min(seconds), max(seconds))},
    )


def _longest(phases: Mapping[str, Points]) -> dict[str, Points]:
    kept = {
        path: [(value, seconds) for value, seconds in found if value > 0 and seconds > 0]
        for path, found in phases.items()
    }
    order = sorted((path for path in kept if kept[path]), key=lambda path: -max(kept[path])[1])
    return {path: kept[path] for path in order[:MOST_PHASES]}


def _middles(points: Points) -> tuple[np.ndarray, np.ndarray]:
    """The values (n,) and the median of each one's seconds (n,)."""
    values = sorted({value for value, _ in points})
    return np.array(values), np.array(
        [np.median([seconds for value, seconds in points if value == one]) for one in values]
    )


def _line(points: Points, exponent: float, scaled: units.Scale, fit: float | None) -> list[go.Scatter]:
    """A power through the middle of the points; through the first ones where it is no fit but a reference."""
    values = sorted({value for value, _ in points})
    if len(values) < 2:
        return []
    through = points if fit is not None else [point for point in points if point[0] == values[0]]
    height = np.mean([math.log(seconds) - exponent * math.log(value) for value, seconds in through])
    ends = np.array([values[0], values[-1]])
    return [
        go.Scatter(
            x=ends,
            y=np.exp(height) * ends**exponent / scaled.size,
            name=f"fit: {units.fixed(fit, 2)}"
            if fit is not None
            else "level"
            if not exponent
            else "in proportion",
            mode="lines",
            line={
                "color": theme.MUTED if fit is None else theme.LINE,
                "width": 1.8,
                "dash": "dot" if fit is None else "solid",
            },
            hoverinfo="skip",
        )
    ]


def _measured(points: Points, parameter: str, scaled: units.Scale) -> go.Scatter:
    said = [
        f"<b>{units.quantity(seconds, 's')}</b><br>{theme.plain(parameter)} {units.number(value)}"
        for value, seconds in points
    ]
    return go.Scatter(
        x=np.array([value for value, _ in points]),
        y=np.array([seconds for _, seconds in points]) / scaled.size,
        name="measured",
        mode="markers",
        marker={"color": theme.INK, "size": 7, "symbol": "circle-open", "line": {"width": 1.6}},
        text=said,
        hovertemplate="%{text}<extra></extra>",
    )


def _phase(path: str, points: Points, scaled: units.Scale, order: int) -> go.Scatter:
    values, seconds = _middles(points)
    return go.Scatter(
        x=values,
        y=seconds / scaled.size,
        name=theme.plain(path),
        mode="lines+markers",
        line={
            "color": theme.HUES[order % len(theme.HUES)],
            "width": 1.2,
            "dash": ("dash", "dashdot", "longdash")[order % 3],
        },
        marker={"size": 4},
        text=[units.quantity(float(one), "s") for one in seconds],
        hovertemplate="%{fullData.name}: %{text}<extra></extra>",
    )


def _height(low: float, high: float) -> dict[str, object]:
    """A decade at least: what costs the same throughout is drawn flat, not as mountains."""
    room = max(0.0, 1.0 - math.log10(high / low)) / 2 + 0.08
    least, most = low / 10**room, high * 10**room
    return {**axes.decades(least, most), "range": [math.log10(least), math.log10(most)], "showgrid": True}
