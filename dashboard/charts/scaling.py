"""How a time grows with a swept parameter: both axes logarithmic, so that a power is a straight line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dashboard.charts import axes, theme
from dashboard.sentences.formatting import numbers

HEIGHT = 320
MOST_PHASES = 5
LARGEST_LOGARITHM = 230.0

# (value of the parameter, seconds), one per measured process.
Points = Sequence[tuple[float, float]]


def draw_growth(
    points: Points,
    exponent: float | None,
    parameter: str,
    *,
    reference: float,
    title: str,
    phases: Mapping[str, Points] | None = None,
) -> theme.Figure:
    """At least one point over 0; `reference` is the exponent that is expected, drawn beside the fit.

    `phases` are drawn thinner, those that take longest at the largest value.
    """
    usable = [(value, seconds) for value, seconds in points if value > 0 and seconds > 0]
    # By the middle of the axis: an end of it would make the other one a small fraction.
    scaled = numbers.choose_scale("s", math.exp(float(np.mean([math.log(seconds) for _, seconds in usable]))))
    longest = _longest_phases(phases or {})
    # A line between two values of a log-log chart is straight: its ends are enough.
    traces = [
        *(_phase_trace(path, times, scaled, order) for order, (path, times) in enumerate(longest.items())),
        *_power_line(usable, reference, scaled, None),
        *(_power_line(usable, exponent, scaled, exponent) if exponent is not None else ()),
        _measured_trace(usable, parameter, scaled),
    ]
    seconds = [y for trace in traces for y in trace["y"] if y > 0]
    return theme.create_figure(
        traces,
        HEIGHT,
        showlegend=True,
        xaxis={
            "title": {"text": theme.escape_markup(parameter)},
            **axes.value_axis([value for value, _ in usable]),
        },
        yaxis={"title": {"text": f"{scaled.unit} {title}"}, **_time_axis(min(seconds), max(seconds))},
    )


def _longest_phases(phases: Mapping[str, Points]) -> dict[str, Points]:
    positive = {
        path: [(value, seconds) for value, seconds in points if value > 0 and seconds > 0]
        for path, points in phases.items()
    }
    paths = sorted((path for path in positive if positive[path]), key=lambda path: -max(positive[path])[1])
    return {path: positive[path] for path in paths[:MOST_PHASES]}


def _median_seconds(points: Points) -> tuple[np.ndarray, np.ndarray]:
    """The values (n,) and the median of each one's seconds (n,)."""
    by_value: dict[float, list[float]] = {}
    for value, seconds in sorted(points):
        by_value.setdefault(value, []).append(seconds)
    return np.array(list(by_value)), np.array([np.median(seconds) for seconds in by_value.values()])


def _power_line(
    points: Points, exponent: float, scaled: numbers.Scale, fit: float | None
) -> list[theme.Trace]:
    """A power through the middle of the points; through the first ones where it is no fit but a reference."""
    values = sorted({value for value, _ in points})
    if len(values) < 2:
        return []
    through = points if fit is not None else [point for point in points if point[0] == values[0]]
    height = np.mean([math.log(seconds) - exponent * math.log(value) for value, seconds in through])
    ends = np.array([values[0], values[-1]])
    # What a document says it fitted needn't fit its points: a line far outside is drawn at the edge.
    logarithms = np.clip(height + exponent * np.log(ends), -LARGEST_LOGARITHM, LARGEST_LOGARITHM)
    return [
        theme.scatter_trace(
            x=ends,
            y=np.exp(logarithms) / scaled.size,
            name=f"fit: {numbers.format_fixed(fit, 2)}"
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


def _measured_trace(points: Points, parameter: str, scaled: numbers.Scale) -> theme.Trace:
    name = theme.escape_markup(parameter)
    hover = [
        f"<b>{numbers.format_quantity(seconds, 's')}</b><br>{name} {numbers.format_number(value)}"
        for value, seconds in points
    ]
    return theme.scatter_trace(
        x=np.array([value for value, _ in points]),
        y=np.array([seconds for _, seconds in points]) / scaled.size,
        name="measured",
        mode="markers",
        marker={"color": theme.INK, "size": 7, "symbol": "circle-open", "line": {"width": 1.6}},
        text=hover,
        hovertemplate="%{text}<extra></extra>",
    )


def _phase_trace(path: str, points: Points, scaled: numbers.Scale, order: int) -> theme.Trace:
    values, seconds = _median_seconds(points)
    return theme.scatter_trace(
        x=values,
        y=seconds / scaled.size,
        name=theme.escape_markup(path),
        mode="lines+markers",
        line={
            "color": theme.HUES[order % len(theme.HUES)],
            "width": 1.2,
            "dash": ("dash", "dashdot", "longdash")[order % 3],
        },
        marker={"size": 4},
        text=[numbers.format_quantity(float(median), "s") for median in seconds],
        hovertemplate="%{fullData.name}: %{text}<extra></extra>",
    )


def _time_axis(low: float, high: float) -> dict[str, object]:
    """A decade at least: what costs the same throughout is drawn flat, not as mountains."""
    room = max(0.0, 1.0 - math.log10(high / low)) / 2 + 0.08
    least, most = low / 10**room, high * 10**room
    return {**axes.decade_axis(least, most), "range": [math.log10(least), math.log10(most)], "showgrid": True}
