"""A page's figure of lines and marks as a picture: its drawings below each other, on white."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dashboard.charts import theme
from dashboard.charts.canvas import (
    BAD,
    BAND,
    DOUBTFUL,
    GOOD,
    GRID,
    INK,
    MUTED,
    At,
    Canvas,
    fit_text,
    text_width,
)
from dashboard.charts.picture_ticks import LABEL_SIZE, round_ticks
from dashboard.sentences import numbers

WIDTH = 900
LEFT, TOP, RIGHT = 76, 94, 880
# Below the plot, where its horizontal axis is written, and between two plots for the title of the lower one.
BELOW, BETWEEN = 44, 34
TITLE_SIZE, CAPTION_SIZE = 15, 11
LEGEND_AT, LEGEND_GAP = 62, 18
TICKS, COLUMNS = 5, 9
# A range that the figure doesn't name reaches beyond the values by this part.
ROOM = 0.05
# Colours of the pages in the light that can be told apart on white.
COLOURS: Mapping[str, str] = {
    theme.INK: INK,
    theme.MUTED: MUTED,
    theme.FAINT: DOUBTFUL,
    theme.GRID: GRID,
    theme.LINE: GOOD,
    theme.BAND: BAND,
    theme.WINDOW: "#eef3fb",
    theme.WORSE: BAD,
    **dict(
        zip(
            theme.HUES,
            ("#2563c4", "#c77d0a", "#2f8f5b", "#b5483a", "#7a56b8", "#8a6a2f", "#b0478a", "#5f6770"),
            strict=True,
        )
    ),
}
DIAMOND = 1.25


@dataclass(frozen=True, slots=True)
class FigurePlot:
    """One drawing of the figure: where its values lie in the picture, in its pixels."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    top: float
    bottom: float

    def locate(self, x: object, y: object) -> np.ndarray:
        """The places (n, 2) of values; NaN where one is missing."""
        (left, right), (low, high) = self.x_range, self.y_range
        across = (_as_numbers(x) - left) / (right - left)
        up = (_as_numbers(y) - low) / (high - low)
        return np.column_stack(
            [LEFT + across * (RIGHT - LEFT), self.bottom - up.clip(0, 1) * (self.bottom - self.top)]
        )


def picture_height(figure: theme.Figure | None) -> int:
    """Of what `draw_figure_picture` draws."""
    return TOP + (figure["layout"]["height"] + BELOW if figure else 0)


def draw_figure_picture(canvas: Canvas, figure: theme.Figure | None, title: str, caption: str) -> bytes:
    """On a canvas of WIDTH and `picture_height`; without a figure the caption says why."""
    canvas.write_text((LEFT, 14), fit_text(title, TITLE_SIZE, RIGHT - LEFT), INK, TITLE_SIZE, "lt")
    canvas.write_text((LEFT, 38), fit_text(caption, CAPTION_SIZE, RIGHT - LEFT), MUTED, CAPTION_SIZE, "lt")
    if figure is None:
        return canvas.encode()
    layout, plots = figure["layout"], _place_plots(figure)
    shapes = layout.get("shapes", ())
    for shape in shapes:
        if shape["type"] == "rect":
            _draw_stretch(canvas, shape, plots)
    for name, plot in plots.items():
        _draw_grid(canvas, layout[_layout_name(name)], plot)
    for shape in shapes:
        if shape["type"] == "line":
            _draw_level(canvas, shape, plots["y"])
    for trace, before in zip(figure["data"], [None, *figure["data"]], strict=False):
        _draw_trace(canvas, trace, before, plots[trace.get("yaxis", "y")])
    _write_columns(canvas, layout["xaxis"], list(plots.values())[-1])
    if layout.get("showlegend"):
        _write_legend(canvas, figure["data"])
    return canvas.encode()


def _place_plots(figure: theme.Figure) -> dict[str, FigurePlot]:
    """By the name of their vertical axis, the uppermost first."""
    layout, traces = figure["layout"], figure["data"]
    names = list(dict.fromkeys(trace.get("yaxis", "y") for trace in traces))
    x_range = _range_of(layout["xaxis"], [trace["x"] for trace in traces])
    height = (layout["height"] - BETWEEN * (len(names) - 1)) / len(names)
    plots = {}
    for index, name in enumerate(names):
        axis = layout[_layout_name(name)]
        values = [trace["y"] for trace in traces if trace.get("yaxis", "y") == name]
        top = TOP + index * (height + BETWEEN)
        plots[name] = FigurePlot(x_range, _range_of(axis, values), top, top + height)
    return plots


def _layout_name(axis: str) -> str:
    return f"yaxis{axis[1:]}"


def _range_of(axis: Mapping[str, Any], values: Sequence[object]) -> tuple[float, float]:
    if "range" in axis:
        low, high = axis["range"]
        return float(low), float(high)
    known = np.concatenate([_as_numbers(part) for part in values])
    known = known[np.isfinite(known)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    if axis.get("rangemode") == "tozero":
        low, high = min(low, 0.0), max(high, 0.0)
    return low, high + (ROOM * (high - low) or 1.0)


def _as_numbers(values: object) -> np.ndarray:
    return np.asarray(values, dtype=np.float64)


def _draw_stretch(canvas: Canvas, shape: Mapping[str, Any], plots: Mapping[str, FigurePlot]) -> None:
    """Over all drawings."""
    first, *_, last = (*plots.values(), *plots.values())
    (left, _), (right, _) = first.locate([shape["x0"], shape["x1"]], [0, 0])
    corners = [(left, first.top), (right, first.top), (right, last.bottom), (left, last.bottom)]
    canvas.draw_area(corners, COLOURS[shape["fillcolor"]])


def _draw_level(canvas: Canvas, shape: Mapping[str, Any], plot: FigurePlot) -> None:
    low, high = plot.y_range
    if low <= shape["y0"] <= high:
        ((_, y),) = plot.locate([0], [shape["y0"]])
        canvas.draw_line([(LEFT, y), (RIGHT, y)], COLOURS[shape["line"]["color"]], 1)


def _draw_grid(canvas: Canvas, axis: Mapping[str, Any], plot: FigurePlot) -> None:
    """Lines at round values with their numbers beside them, and the axis' title above."""
    values = round_ticks(*plot.y_range, TICKS)
    suffix = axis.get("ticksuffix", "")
    for value, (_, y) in zip(values, plot.locate([0] * len(values), values), strict=True):
        canvas.draw_line([(LEFT, y), (RIGHT, y)], GRID, 1)
        canvas.write_text((LEFT - 8, y), f"{numbers.format_number(value)}{suffix}", MUTED, LABEL_SIZE, "rm")
    canvas.write_text((LEFT, plot.top - 16), axis["title"]["text"], MUTED, CAPTION_SIZE, "lt")


def _write_columns(canvas: Canvas, axis: Mapping[str, Any], plot: FigurePlot) -> None:
    """Round numbers below the lowest drawing; those of what is counted are whole."""
    low, high = plot.x_range
    values = round_ticks(low, high, COLUMNS)
    if axis.get("dtick"):
        values = [value for value in values if float(value).is_integer() and value >= axis["tick0"]]
    for value, (x, _) in zip(values, plot.locate(values, [0] * len(values)), strict=True):
        canvas.write_text((x, plot.bottom + 6), numbers.format_number(value), MUTED, LABEL_SIZE, "mt")
    middle = (LEFT + RIGHT) / 2
    canvas.write_text((middle, plot.bottom + 24), axis["title"]["text"], MUTED, CAPTION_SIZE, "mt")


def _draw_trace(canvas: Canvas, trace: theme.Trace, before: theme.Trace | None, plot: FigurePlot) -> None:
    places = plot.locate(trace["x"], trace["y"])
    line = trace.get("line", {})
    if trace.get("fill") == "tonexty" and before is not None:
        edge = plot.locate(before["x"], before["y"])
        canvas.draw_area(_pixel_points(np.concatenate([edge, places[::-1]])), COLOURS[trace["fillcolor"]])
    elif "lines" in trace["mode"] and line.get("width"):
        for part in _known_parts(places):
            canvas.draw_line(_pixel_points(part), COLOURS[line["color"]], line["width"])
    if "markers" in trace["mode"]:
        _draw_marks(canvas, trace, places)


def _known_parts(places: np.ndarray) -> Iterator[np.ndarray]:
    """Stretches of two places at least without a missing value between them."""
    known = np.flatnonzero(np.isfinite(places).all(axis=1))
    for part in np.split(known, np.flatnonzero(np.diff(known) > 1) + 1):
        if len(part) > 1:
            yield places[part]


def _draw_marks(canvas: Canvas, trace: theme.Trace, places: np.ndarray) -> None:
    marker, count = trace["marker"], len(places)
    sizes = np.broadcast_to(_as_numbers(marker["size"]), count).tolist()
    colours = _for_each(marker.get("color", trace.get("line", {}).get("color")), count)
    symbols = _for_each(marker.get("symbol", "circle"), count)
    for place, size, colour, symbol in zip(_pixel_points(places), sizes, colours, symbols, strict=True):
        if not size or not all(map(math.isfinite, place)):
            continue
        shape, _, rest = symbol.partition("-")
        if shape == "diamond":
            _draw_diamond(canvas, place, DIAMOND * size / 2, COLOURS[colour], hollow=bool(rest))
        else:
            canvas.draw_dot(place, size / 2, COLOURS[colour], hollow=bool(rest))


def _draw_diamond(canvas: Canvas, at: At, reach: float, colour: str, *, hollow: bool) -> None:
    x, y = at
    corners = [(x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y)]
    if hollow:
        canvas.draw_line([*corners, corners[0]], colour, 1)
    else:
        canvas.draw_area(corners, colour)


def _for_each(value: Any, count: int) -> list[str]:
    return [value] * count if isinstance(value, str) else list(value)


def _pixel_points(places: np.ndarray) -> list[At]:
    return [(float(x), float(y)) for x, y in places]


def _write_legend(canvas: Canvas, traces: Iterable[theme.Trace]) -> None:
    """Each line's name after a stroke of it, as many as fit."""
    x = float(LEFT)
    for trace in traces:
        name = str(trace["name"])
        if x + LEGEND_GAP + text_width(name, CAPTION_SIZE) > RIGHT:
            break
        canvas.draw_line([(x, LEGEND_AT), (x + 14, LEGEND_AT)], COLOURS[trace["line"]["color"]], 3)
        canvas.write_text((x + LEGEND_GAP, LEGEND_AT), name, MUTED, CAPTION_SIZE, "lm")
        x += LEGEND_GAP + 1.12 * text_width(name, CAPTION_SIZE) + LEGEND_GAP
