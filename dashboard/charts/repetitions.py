"""What stands around a repetition's telemetry: bands before its window, other repetitions, one cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dashboard.charts import theme
from dashboard.charts.telemetry import (
    BESIDE,
    DRAWN_UNITS,
    LARGEST_DRAWN,
    Channel,
    choose_readings,
    choose_row_scale,
    watched_moments,
)

# Of a line behind the others; the one in front has all of its points.
MOST_POINTS = 150
# Pixels: of a line of labels, of a letter in it, and of the drawings on a phone.
LABEL_LINE, LETTER, NARROWEST = 18, 6.2, 260
# Above them; a legend of several lines makes the drawings lower, and so its own distance to them smaller.
LEGEND_GAP = 10


def draw_bands(
    drawn: theme.Figure, startup: float | None, warmup: float | None, window: tuple[float, float]
) -> None:
    """Start-up from the beginning, and warm-up up to the window; each may be unknown. Called before other
    repetitions are laid behind."""
    started = min(startup or 0.0, window[0])
    bands = {"measured window, as in the table": window}
    if started:
        bands["start-up"] = (0.0, started)
        _shade_band(drawn, bands["start-up"], "start-up", 0.7)
    if warmup:
        bands["warm-up"] = (max(started, window[0] - warmup), window[0])
        _shade_band(drawn, bands["warm-up"], "warm-up", 0.35)
    _label_bands(drawn, bands)


def _shade_band(drawn: theme.Figure, band: tuple[float, float], name: str, opacity: float) -> None:
    place = {"x0": band[0], "x1": band[1], "y0": 0, "y1": 1, "xref": "x", "yref": "paper", "layer": "below"}
    theme.add_shape(
        drawn, type="rect", fillcolor=theme.GRID, opacity=opacity, line={"width": 0}, name=name, **place
    )


def _label_bands(drawn: theme.Figure, bands: Mapping[str, tuple[float, float]]) -> None:
    """Between the drawings and the legend, where no line runs; above each other where they would meet."""
    end = max(float(trace["x"][-1]) for trace in drawn["data"] if len(trace["x"]))
    lines: list[list[tuple[float, float]]] = []
    for name, band in sorted(bands.items(), key=lambda named: named[1]):
        width = (len(name) + 2) * LETTER / NARROWEST * end
        # It goes where the readings are: beyond them it would widen the drawing, threefold on a phone.
        is_late = sum(band) > end
        span = (band[1] - width, band[1]) if is_late else (band[0], band[0] + width)
        free = (number for number, spans in enumerate(lines) if not _overlaps_any(span, spans))
        line = next(free, len(lines))
        if line == len(lines):
            lines.append([])
        lines[line].append(span)
        theme.add_annotation(
            drawn,
            x=band[int(is_late)],
            y=1,
            xref="x",
            yref="paper",
            yshift=LABEL_LINE * line + 2,
            text=f" {name} ",
            showarrow=False,
            xanchor="right" if is_late else "left",
            yanchor="bottom",
            font={"color": theme.MUTED, "size": 11},
        )
    height, labels = drawn["layout"]["height"], LABEL_LINE * len(lines) + LEGEND_GAP
    drawn["layout"].update(height=height + labels, legend={"y": 1 + labels / (height - BESIDE)})


def _overlaps_any(span: tuple[float, float], others: Sequence[tuple[float, float]]) -> bool:
    return any(span[0] < end and start < span[1] for start, end in others)


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
        _faint_trace(fronts[channel.label], channel, sizes[channel.unit], repetition, watched)
        for repetition, channels in sorted(others.items())
        for watched in [watched_moments(channels)]
        for channel in channels
        if channel.unit in sizes and channel.label in fronts
    ]
    drawn["data"] = [*behind, *drawn["data"]]


def _faint_trace(
    front: theme.Trace, channel: Channel, size: float, repetition: int, watched: np.ndarray
) -> theme.Trace:
    kept = choose_readings(channel, MOST_POINTS, watched)
    times = channel.times(kept)
    return {
        **front,
        "mode": "lines",
        "x": times.astype(np.float32),
        "y": np.clip(channel.readings()[kept] / size, -LARGEST_DRAWN, LARGEST_DRAWN).astype(np.float32),
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
