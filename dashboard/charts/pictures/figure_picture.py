"""A page's figure of lines and marks as a picture: its drawings below each other, on white."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any

import numpy as np

from dashboard.charts import theme
from dashboard.charts.pictures.canvas import (
    BAD,
    BAND,
    DOUBTFUL,
    GOOD,
    GRID,
    INK,
    MUTED,
    WIDER,
    At,
    Canvas,
    fit_text,
    text_width,
)
from dashboard.charts.pictures.picture_axes import PictureAxis
from dashboard.charts.pictures.picture_marks import cut_dashes, draw_mark
from dashboard.charts.pictures.picture_ticks import LABEL_SIZE

WIDTH = 900
LEFT, TOP, RIGHT = 76, 94, 880
# Below the plot, where its horizontal axis is written, and between two plots for the title of the lower one.
BELOW, BETWEEN = 44, 34
TITLE_SIZE, CAPTION_SIZE = 15, 11
# Of the legend: where its first row is, and how far its rows and the names in them are apart.
LEGEND_AT, LEGEND_ROW, LEGEND_GAP, LEGEND_STROKE = 62, 16, 18, 14
# The title of an axis above its drawing; where marks are named there, over these.
TITLE_ABOVE, NAMES_ABOVE = 16, 22
# Between a line and its name, and between a name and the picture's edge.
NAME_GAP, MARGIN = 3, 4
TICKS, COLUMNS = 5, 9
# So far to the left of the drawing a label below it may begin, for the vertical axis' own to stay free.
LEFTMOST = 24
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
    theme.DOUBT: "#7a5a00",
    **dict(
        zip(
            theme.HUES,
            ("#2563c4", "#c77d0a", "#2f8f5b", "#b5483a", "#7a56b8", "#8a6a2f", "#b0478a", "#5f6770"),
            strict=True,
        )
    ),
}

# Each row of a legend: (where it begins, the trace, its name).
Legend = list[list[tuple[float, theme.Trace, str]]]


@dataclass(frozen=True, slots=True)
class FigurePlot:
    """One drawing of the figure: where its values lie in the picture, in its pixels."""

    x: PictureAxis
    y: PictureAxis
    top: float
    bottom: float

    def locate(self, x: Any, y: Any) -> np.ndarray:
        """The places (n, 2) of values; NaN where one is missing."""
        return np.column_stack([self.across(self.x.shares(x)), self.upwards(self.y.shares(y).clip(0, 1))])

    def across(self, share: Any) -> Any:
        return LEFT + share * (RIGHT - LEFT)

    def upwards(self, share: Any) -> Any:
        return self.bottom - share * (self.bottom - self.top)


def picture_height(figure: theme.Figure | None) -> int:
    """Of what `draw_figure_picture` draws."""
    return _top_of(figure) + figure["layout"]["height"] + BELOW if figure else TOP


def draw_figure_picture(canvas: Canvas, figure: theme.Figure | None, title: str, caption: str) -> bytes:
    """On a canvas of WIDTH and `picture_height`; without a figure the caption says why."""
    canvas.write_text((LEFT, 14), fit_text(title, TITLE_SIZE, RIGHT - LEFT), INK, TITLE_SIZE, "lt")
    canvas.write_text((LEFT, 38), fit_text(caption, CAPTION_SIZE, RIGHT - LEFT), MUTED, CAPTION_SIZE, "lt")
    if figure is None:
        return canvas.encode()
    layout, plots = figure["layout"], _place_plots(figure)
    shapes, names = layout.get("shapes", ()), layout.get("annotations", ())
    for shape in shapes:
        if shape["type"] == "rect":
            _draw_stretch(canvas, shape, plots)
    for name, plot in plots.items():
        _draw_grid(canvas, layout[_layout_name(name)], plot, TITLE_ABOVE + (NAMES_ABOVE if names else 0))
    for shape in shapes:
        if shape["type"] == "line" and shape.get("yref") != "paper":
            _draw_level(canvas, shape, plots["y"])
    for trace, before in zip(figure["data"], [None, *figure["data"]], strict=False):
        _draw_trace(canvas, trace, before, plots[trace.get("yaxis", "y")])
    for shape in shapes:
        if shape.get("yref") == "paper" and shape["type"] == "line":
            _draw_upright(canvas, shape, plots["y"])
    for name in names:
        _write_name(canvas, name, plots["y"])
    _write_columns(canvas, layout["xaxis"], list(plots.values())[-1])
    for index, row in enumerate(_legend_rows(figure)):
        _write_legend_row(canvas, row, LEGEND_AT + index * LEGEND_ROW)
    return canvas.encode()


def _top_of(figure: theme.Figure) -> int:
    """Where the uppermost drawing begins: below each row of its legend and the names of its marks."""
    named = NAMES_ABOVE if figure["layout"].get("annotations") else 0
    return TOP + LEGEND_ROW * max(0, len(_legend_rows(figure)) - 1) + named


def _place_plots(figure: theme.Figure) -> dict[str, FigurePlot]:
    """By the name of their vertical axis, the uppermost first."""
    layout, traces = figure["layout"], figure["data"]
    names = list(dict.fromkeys(trace.get("yaxis", "y") for trace in traces))
    x_axis = PictureAxis.of_values(layout["xaxis"], [trace["x"] for trace in traces])
    height = (layout["height"] - BETWEEN * (len(names) - 1)) / len(names)
    plots = {}
    for index, name in enumerate(names):
        values = [trace["y"] for trace in traces if trace.get("yaxis", "y") == name]
        y_axis = PictureAxis.of_values(layout[_layout_name(name)], values)
        top = _top_of(figure) + index * (height + BETWEEN)
        plots[name] = FigurePlot(x_axis, y_axis, top, top + height)
    return plots


def _layout_name(axis: str) -> str:
    return f"yaxis{axis[1:]}"


def _draw_stretch(canvas: Canvas, shape: Mapping[str, Any], plots: Mapping[str, FigurePlot]) -> None:
    """Over all drawings."""
    first, *_, last = (*plots.values(), *plots.values())
    left, right = first.across(first.x.shares([shape["x0"], shape["x1"]]))
    corners = [(left, first.top), (right, first.top), (right, last.bottom), (left, last.bottom)]
    canvas.draw_area(corners, COLOURS[shape["fillcolor"]])


def _draw_level(canvas: Canvas, shape: Mapping[str, Any], plot: FigurePlot) -> None:
    (share,) = plot.y.shares([shape["y0"]])
    if 0 <= share <= 1:
        y = float(plot.upwards(share))
        canvas.draw_line([(LEFT, y), (RIGHT, y)], COLOURS[shape["line"]["color"]], 1)


def _draw_upright(canvas: Canvas, shape: Mapping[str, Any], plot: FigurePlot) -> None:
    """At one value, as high as the drawing."""
    (share,) = plot.x.shares([shape["x0"]])
    if 0 <= share <= 1:
        x = float(plot.across(share))
        canvas.draw_line([(x, plot.top), (x, plot.bottom)], COLOURS[shape["line"]["color"]], 1)


def _write_name(canvas: Canvas, annotation: Mapping[str, Any], plot: FigurePlot) -> None:
    """Of an upright line, above it at the side that the figure says."""
    text = unescape(annotation["text"])
    # Unlike a shape's, its place on a logarithmic axis is a logarithm.
    x = plot.across((annotation["x"] - plot.x.low) / (plot.x.high - plot.x.low))
    y = plot.top - annotation.get("yshift", 0) - 1
    if annotation["xanchor"] == "right":
        canvas.write_text((x - NAME_GAP, y), text, COLOURS[annotation["font"]["color"]], CAPTION_SIZE, "rb")
        return
    last = WIDTH - MARGIN - WIDER * text_width(text, CAPTION_SIZE)
    canvas.write_text(
        (min(x + NAME_GAP, last), y), text, COLOURS[annotation["font"]["color"]], CAPTION_SIZE, "lb"
    )


def _draw_grid(canvas: Canvas, axis: Mapping[str, Any], plot: FigurePlot, above: float) -> None:
    """Lines at round values with their numbers beside them, and the axis' title `above`."""
    for share, label in plot.y.ticks(TICKS):
        y = float(plot.upwards(share))
        canvas.draw_line([(LEFT, y), (RIGHT, y)], GRID, 1)
        canvas.write_text((LEFT - 8, y), label, MUTED, LABEL_SIZE, "rm")
    title = unescape(axis["title"]["text"])
    canvas.write_text((LEFT, plot.top - above), title, MUTED, CAPTION_SIZE, "lt")


def _write_columns(canvas: Canvas, axis: Mapping[str, Any], plot: FigurePlot) -> None:
    """Below the lowest drawing; what would touch its neighbour is left out."""
    free = -math.inf
    for share, label in plot.x.ticks(COLUMNS):
        x, half = float(plot.across(share)), WIDER * text_width(label, LABEL_SIZE) / 2
        if max(free, LEFT - LEFTMOST) < x - half and x + half < WIDTH:
            canvas.write_text((x, plot.bottom + 6), label, MUTED, LABEL_SIZE, "mt")
            free = x + half + MARGIN
    unnamed = "UTC" if axis.get("type") == "date" else ""
    title = unescape(axis.get("title", {}).get("text", unnamed))
    canvas.write_text(((LEFT + RIGHT) / 2, plot.bottom + 24), title, MUTED, CAPTION_SIZE, "mt")


def _draw_trace(canvas: Canvas, trace: theme.Trace, before: theme.Trace | None, plot: FigurePlot) -> None:
    places = plot.locate(trace["x"], trace["y"])
    line = trace.get("line", {})
    if line.get("shape") == "hv":
        places = _with_steps(places)
    if trace.get("fill") == "tonexty" and before is not None:
        edge = plot.locate(before["x"], before["y"])
        canvas.draw_area(_pixel_points(np.concatenate([edge, places[::-1]])), COLOURS[trace["fillcolor"]])
    elif trace.get("fill") == "tozeroy":
        edge = np.column_stack([places[[-1, 0], 0], [plot.bottom, plot.bottom]])
        canvas.draw_area(_pixel_points(np.concatenate([places, edge])), COLOURS[trace["fillcolor"]])
    elif "lines" in trace["mode"] and line.get("width"):
        for part in _known_parts(places):
            _draw_stroke(canvas, _pixel_points(part), line, line["width"])
    if "markers" in trace["mode"]:
        _draw_marks(canvas, trace, places)


def _draw_stroke(canvas: Canvas, points: Sequence[At], line: Mapping[str, Any], width: float) -> None:
    for part in cut_dashes(points, line.get("dash", "solid")):
        canvas.draw_line(part, COLOURS[line["color"]], width)


def _with_steps(places: np.ndarray) -> np.ndarray:
    """Each height kept up to the next place."""
    corners = np.column_stack([places[1:, 0], places[:-1, 1]])
    return np.concatenate([np.stack([places[:-1], corners], axis=1).reshape(-1, 2), places[-1:]])


def _known_parts(places: np.ndarray) -> Iterator[np.ndarray]:
    """Stretches of two places at least without a missing value between them."""
    known = np.flatnonzero(np.isfinite(places).all(axis=1))
    for part in np.split(known, np.flatnonzero(np.diff(known) > 1) + 1):
        if len(part) > 1:
            yield places[part]


def _draw_marks(canvas: Canvas, trace: theme.Trace, places: np.ndarray) -> None:
    marker, count = trace["marker"], len(places)
    sizes = np.broadcast_to(np.asarray(marker["size"], dtype=np.float64), count).tolist()
    colours = _for_each(_mark_colour(trace), count)
    symbols = _for_each(marker.get("symbol", "circle"), count)
    for place, size, colour, symbol in zip(_pixel_points(places), sizes, colours, symbols, strict=True):
        if size and all(map(math.isfinite, place)):
            draw_mark(canvas, place, size, COLOURS[colour], symbol)


def _mark_colour(trace: theme.Trace) -> Any:
    """One for all, or one for each mark."""
    return trace["marker"].get("color", trace.get("line", {}).get("color"))


def _for_each(value: Any, count: int) -> list[str]:
    return [value] * count if isinstance(value, str) else list(value)


def _pixel_points(places: np.ndarray) -> list[At]:
    return [(float(x), float(y)) for x, y in places]


def _legend_rows(figure: theme.Figure) -> Legend:
    """The names of all lines, in as many rows as they take."""
    rows: Legend = []
    x = math.inf
    for trace in figure["data"] if figure["layout"].get("showlegend") else ():
        name = fit_text(unescape(trace["name"]), CAPTION_SIZE, RIGHT - LEFT - LEGEND_GAP)
        width = LEGEND_GAP + WIDER * text_width(name, CAPTION_SIZE)
        if x + width > RIGHT:
            rows.append([])
            x = float(LEFT)
        rows[-1].append((x, trace, name))
        x += width + LEGEND_GAP
    return rows


def _write_legend_row(canvas: Canvas, row: Sequence[tuple[float, theme.Trace, str]], y: float) -> None:
    """Each name after a stroke of its line and a mark of its own shape."""
    for x, trace, name in row:
        if "lines" in trace["mode"]:
            _draw_stroke(canvas, [(x, y), (x + LEGEND_STROKE, y)], trace["line"], 3)
        if "markers" in trace["mode"] and "symbol" in trace["marker"]:
            symbol, colour = trace["marker"]["symbol"], _for_each(_mark_colour(trace), 1)[0]
            # Where each mark has its own, some are hollow.
            symbol = symbol if isinstance(symbol, str) else symbol[0].removesuffix("-open")
            size = float(np.max(trace["marker"]["size"]))
            draw_mark(canvas, (x + LEGEND_STROKE / 2, y), size, COLOURS[colour], symbol)
        canvas.write_text((x + LEGEND_GAP, y), name, MUTED, CAPTION_SIZE, "lm")
