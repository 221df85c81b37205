"""What stands around a repetition's telemetry: bands before its window, other repetitions, one cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dashboard.charts import theme
from dashboard.charts.telemetry import (
    DRAWN_UNITS,
    LARGEST_DRAWN,
    Channel,
    choose_readings,
    choose_row_scale,
)

# Of a line behind the others; the one in front has all of its points.
MOST_POINTS = 150
# A narrower band has no room for its name.
LEAST_LABELLED = 0.08


def draw_bands(
    drawn: theme.Figure, startup: float | None, warmup: float | None, window: tuple[float, float]
) -> None:
    """Start-up from the beginning, and warm-up up to the window; each may be unknown."""
    started = min(startup or 0.0, window[0])
    if started:
        _shade_band(drawn, 0.0, started, "start-up", 0.7, window[1])
    if warmup:
        _shade_band(drawn, max(started, window[0] - warmup), window[0], "warm-up", 0.35, window[1])


def _shade_band(
    drawn: theme.Figure, start: float, end: float, name: str, opacity: float, whole: float
) -> None:
    place = {"x0": start, "x1": end, "y0": 0, "y1": 1, "xref": "x", "yref": "paper", "layer": "below"}
    theme.add_shape(
        drawn, type="rect", fillcolor=theme.GRID, opacity=opacity, line={"width": 0}, name=name, **place
    )
    if end - start < LEAST_LABELLED * whole:
        return
    theme.add_annotation(
        drawn,
        x=start,
        y=1,
        xref="x",
        yref="paper",
        text=f" {name}",
        showarrow=False,
        xanchor="left",
        yanchor="top",
        font={"color": theme.MUTED, "size": 11},
    )


def overlay_repetitions(
    drawn: theme.Figure, shown: Sequence[Channel], others: Mapping[int, Sequence[Channel]]
) -> None:
    """The same channels of the other repetitions, faint, behind those shown; each on its own clock."""
    sizes = {
        unit: choose_row_scale(row).size
        for unit in DRAWN_UNITS
        if (row := [channel for channel in shown if channel.unit == unit])
    }
    fronts = {trace["name"]: trace for trace in drawn["data"]}
    behind = [
        _faint_trace(fronts[channel.label], channel, sizes[channel.unit], repetition)
        for repetition, channels in sorted(others.items())
        for channel in channels
        if channel.unit in sizes and channel.label in fronts
    ]
    drawn["data"] = [*behind, *drawn["data"]]


def _faint_trace(front: theme.Trace, channel: Channel, size: float, repetition: int) -> theme.Trace:
    readings = np.array([np.nan if value is None else value for value in channel.values], dtype=np.float64)
    kept = choose_readings(readings, MOST_POINTS)
    times = channel.start + channel.interval * kept
    return {
        **front,
        "mode": "lines",
        "x": times.astype(np.float32),
        "y": np.clip(readings[kept] / size, -LARGEST_DRAWN, LARGEST_DRAWN).astype(np.float32),
        "name": f"{channel.label}, repetition {repetition}",
        "opacity": 0.4,
        "line": {**front["line"], "width": 1},
        "showlegend": False,
        "hoverinfo": "skip",
        "hovertemplate": None,
    }


def share_cursor(drawn: theme.Figure) -> None:
    """One line through all drawings at the moment that is pointed at, with what each channel read."""
    drawn["layout"]["hoversubplots"] = "axis"
    drawn["layout"]["xaxis"].update(
        showspikes=True, spikemode="across", spikethickness=1, spikedash="solid", spikecolor=theme.MUTED
    )
