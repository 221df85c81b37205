"""A figure as SVG in the page itself: the chart is there with the first paint, and where no script runs.

The page's script puts Plotly's drawing in its place. It is as wide as its place on the page, so horizontal
lengths are shares of the width; what must not be stretched, such as letters, stands outside of what is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape, unescape
from typing import Any

import numpy as np

from dashboard.charts.theme import Figure, Trace
from dashboard.sentences.formatting.numbers import format_tick

# Above the plot, and below it, where the commits' names are; the sides are the stylesheet's.
TOP, BOTTOM = 12, 58
# Units of the stretched part: finer than pixels, and short to write.
WIDE, HIGH = 2000, 1000
# Pixels between two lines of the grid, at least.
GRID_SPACING = 35
DATE_LABELS = 5
# Widths of a plot in pixels: of the narrowest one that is no phone's, and of one on a phone, where
# the stylesheet hides what is `second`.
LEAST_WIDTH, PHONE_WIDTH = 520, 230
LETTER_WIDTH, LABEL_GAP, LABEL_HEIGHT = 6.5, 8, 16
# What of a label is left of the place that it belongs to.
ANCHORS: Mapping[str, float] = {"left": 0.0, "center": 0.5, "right": 1.0}
DASHES: Mapping[str, str] = {"dot": "2 3", "dash": "6 4", "dashdot": "6 3 2 3", "longdash": "10 4"}
# Of those who left no value, and of those that don't count.
SYMBOLS: Mapping[str, str] = {"square-open": "□", "x-thin-open": "\N{MULTIPLICATION SIGN}"}


class _Plot:
    """Where values lie from the left and from above: in shares, and in units of the stretched part."""

    def __init__(self, layout: Mapping[str, Any]) -> None:
        low, high = layout["xaxis"]["range"]
        self.x_range = float(low), float(high)
        low, high = layout["yaxis"]["range"]
        self.y_range = float(low), float(high)
        self.height = layout["height"] - TOP - BOTTOM

    def x_shares(self, values: object) -> np.ndarray:
        low, high = self.x_range
        return (np.asarray(values, dtype=np.float64) - low) / (high - low)

    def y_shares(self, values: object) -> np.ndarray:
        low, high = self.y_range
        return (high - np.asarray(values, dtype=np.float64)) / (high - low)

    def locate(self, trace: Trace) -> np.ndarray:
        """Integers (n, 3): where the points lie that have a value, and the index of each."""
        x, y = WIDE * self.x_shares(trace["x"]), HIGH * self.y_shares(trace["y"])
        known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
        places = np.column_stack([x[known], y[known]])
        return np.column_stack([places.clip(-WIDE, 2 * WIDE).round().astype(int), known])


def draw_static_svg(figure: Figure) -> str:
    """Return the figure as SVG; empty where its axes have no range, or it isn't made of lines and dots."""
    layout = figure["layout"]
    has_ranges = all("range" in layout.get(axis, {}) for axis in ("xaxis", "yaxis"))
    if not has_ranges or not all(_is_simple(trace) for trace in figure["data"]):
        return ""
    plot = _Plot(layout)
    shapes = "".join(_draw_shape(shape, plot) for shape in layout.get("shapes", ()))
    return "".join(
        [
            f'<svg class="still" width="100%" height="{plot.height}" aria-hidden="true">',
            _draw_grid(layout["yaxis"], plot),
            f'<svg width="100%" height="100%" viewBox="0 0 {WIDE} {HIGH}" preserveAspectRatio="none">',
            shapes,
            *_draw_traces(figure["data"], plot),
            "</svg>",
            *(_write_symbols(trace, plot) for trace in figure["data"]),
            *_write_arrows(layout.get("annotations", ()), plot),
            _write_positions(layout["xaxis"], plot),
            "</svg>",
        ]
    )


def _is_simple(trace: Trace) -> bool:
    return trace["type"] == "scatter" and "stackgroup" not in trace and "yaxis" not in trace


def _draw_traces(traces: Sequence[Trace], plot: _Plot) -> list[str]:
    drawn = []
    before = np.empty((0, 3), dtype=int)
    for trace in traces:
        places = plot.locate(trace)
        if trace.get("fill") == "tonexty":
            drawn.append(f'<path d="{_format_area(before, places)}" fill="{trace["fillcolor"]}"/>')
        else:
            drawn.append(_draw_line(trace, places) + _draw_dots(trace, places))
        before = places
    return drawn


def _draw_line(trace: Trace, places: np.ndarray) -> str:
    line = trace.get("line", {})
    if "lines" not in trace["mode"] or not line.get("width"):
        return ""
    return _draw_stroke(_format_line(places), line)


def _draw_stroke(path: str, line: Mapping[str, Any]) -> str:
    dash = f' stroke-dasharray="{DASHES[line["dash"]]}"' if line.get("dash") in DASHES else ""
    return (
        f'<path d="{path}" fill="none" stroke="{line["color"]}" stroke-width="{line["width"]}"{dash} '
        'stroke-linejoin="round" vector-effect="non-scaling-stroke"/>'
    )


def _draw_dots(trace: Trace, places: np.ndarray) -> str:
    """Lines of no length with round ends: circles would be stretched."""
    if "markers" not in trace["mode"] or "symbol" in trace["marker"]:
        return ""
    path = "".join(f"M{x} {y}h0" for x, y, _ in places.tolist())
    marker = trace["marker"]
    return (
        f'<path d="{path}" stroke="{marker["color"]}" stroke-width="{marker["size"]}" stroke-linecap="round" '
        'vector-effect="non-scaling-stroke"/>'
    )


def _write_symbols(trace: Trace, plot: _Plot) -> str:
    """What is shown by its shape: signs, since shapes would be stretched."""
    symbol = SYMBOLS.get(trace.get("marker", {}).get("symbol", ""))
    if symbol is None:
        return ""
    signs = "".join(
        f'<text x="{100 * x / WIDE:.2f}%" y="{plot.height * y / HIGH + 5:.0f}">{symbol}</text>'
        for x, y, _ in plot.locate(trace).tolist()
    )
    return f'<g class="signs" fill="{trace["marker"]["color"]}">{signs}</g>'


def _format_line(places: np.ndarray) -> str:
    """A new beginning after each value that is missing."""
    if not len(places):
        return ""
    gaps = np.flatnonzero(np.diff(places[:, 2]) > 1) + 1
    return "".join(f"M{_format_steps(part)}" for part in np.split(places[:, :2], gaps))


def _format_steps(places: np.ndarray) -> str:
    """The first place, and the way from each to the next."""
    steps = " ".join(f"{x} {y}" for x, y in np.diff(places, axis=0).tolist())
    return f"{places[0, 0]} {places[0, 1]}" + (f"l{steps}" if steps else "")


def _format_area(low: np.ndarray, high: np.ndarray) -> str:
    """Between two lines over the same points."""
    if not len(low):
        return ""
    return f"M{_format_steps(np.concatenate([low, high[::-1]])[:, :2])}z"


def _draw_shape(shape: Mapping[str, Any], plot: _Plot) -> str:
    """A line, or a rectangle, in values or in shares of the plot."""
    x = np.array([shape["x0"], shape["x1"]], dtype=np.float64)
    y = np.array([shape["y0"], shape["y1"]], dtype=np.float64)
    x = x if shape.get("xref", "x") != "x" else plot.x_shares(x)
    y = 1 - y if shape.get("yref", "y") != "y" else plot.y_shares(y)
    (left, right), (top, bottom) = (WIDE * x).round().astype(int), (HIGH * y).round().astype(int)
    if shape["type"] == "line":
        return _draw_stroke(f"M{left} {top}L{right} {bottom}", shape["line"])
    return f'<path d="M{left} {top}H{right}V{bottom}H{left}z" fill="{shape["fillcolor"]}"/>'


def _draw_grid(axis: Mapping[str, Any], plot: _Plot) -> str:
    """Lines at round values with their numbers beside them, and the axis' title."""
    low, high = plot.y_range
    step = choose_step((high - low) * GRID_SPACING / plot.height)
    values = step * np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    heights = (plot.height * plot.y_shares(values)).round(1).tolist()
    lines = "".join(f'<line x2="100%" y1="{y:g}" y2="{y:g}"/>' for y in heights)
    numbers = "".join(
        f'<text x="-8" y="{y + 4:g}">{format_tick(value, step)}</text>'
        for value, y in zip(values, heights, strict=True)
    )
    title = _clean_text(axis.get("title", {}).get("text", ""))
    middle = round(plot.height / 2)
    named = f'<text class="side" x="{-middle}" y="-44" transform="rotate(-90)">{title}</text>'
    return f'<g class="grid">{lines}</g><g class="values">{numbers}{named}</g>'


def choose_step(least: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that isn't less; `least` is positive."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def _write_positions(axis: Mapping[str, Any], plot: _Plot) -> str:
    """The names of a few commits, or dates; every second is left out where there is little room."""
    low, high = plot.x_range
    places = axis.get("tickvals")
    if places is None:
        places = np.linspace(low, high, 2 * DATE_LABELS + 1)[1::2]
        names = [f"{datetime.fromtimestamp(place / 1000, UTC):%Y-%m-%d}" for place in places]
    else:
        names = axis["ticktext"]
    shares = (100 * plot.x_shares(places)).round(2).tolist()
    y = plot.height + 20
    written = [
        f'<text{_is_second(len(names) - index)} x="{share:g}%" y="{y}">{_clean_text(name)}</text>'
        for index, (share, name) in enumerate(zip(shares, names, strict=True))
    ]
    title = _clean_text(axis.get("title", {}).get("text", ""))
    named = f'<text class="title" x="50%" y="{y + 20}">{title}</text>'
    return f'<g class="positions">{"".join(written)}{named}</g>'


def _is_second(from_the_end: int) -> str:
    return ' class="second"' if from_the_end % 2 == 0 else ""


def _write_arrows(annotations: Sequence[Mapping[str, Any]], plot: _Plot) -> list[str]:
    """What arrows say, at their ends. The script places labels without one: it knows the width.

    Where two would overlap, the later one is left out, and so is one of a place outside of the plot: the list
    below the chart has all of them.
    """
    arrows = [row for row in annotations if row.get("showarrow", True) and _is_inside(row, plot)]
    kept = _without_overlap(arrows, plot, LEAST_WIDTH)
    on_phones = _without_overlap(kept, plot, PHONE_WIDTH)
    return [_write_arrow(arrow, plot, on_phones=arrow in on_phones) for arrow in kept]


def _is_inside(arrow: Mapping[str, Any], plot: _Plot) -> bool:
    return all(0 <= float(share) <= 1 for share in (plot.x_shares(arrow["x"]), plot.y_shares(arrow["y"])))


def _without_overlap(
    arrows: Sequence[Mapping[str, Any]], plot: _Plot, width: float
) -> list[Mapping[str, Any]]:
    """Those whose text covers none of an earlier one's where the plot has this width in pixels."""
    kept, taken = [], list[tuple[float, float, float]]()
    for arrow in arrows:
        size = LETTER_WIDTH * len(unescape(arrow["text"])) + LABEL_GAP
        left = float(plot.x_shares(arrow["x"])) * width - size * ANCHORS[arrow.get("xanchor", "center")]
        y = _arrow_height(arrow, plot)
        if all(
            left >= other + other_size or other >= left + size or abs(y - other_y) >= LABEL_HEIGHT
            for other, other_size, other_y in taken
        ):
            kept.append(arrow)
            taken.append((left, size, y))
    return kept


def _arrow_height(arrow: Mapping[str, Any], plot: _Plot) -> float:
    return float(plot.height * float(plot.y_shares(arrow["y"])) + arrow["ay"])


def _write_arrow(arrow: Mapping[str, Any], plot: _Plot, *, on_phones: bool) -> str:
    share = 100 * float(plot.x_shares(arrow["x"]))
    place = f'x="{share:.2f}%" y="{_arrow_height(arrow, plot):.0f}" fill="{arrow["font"]["color"]}"'
    style = f"arrow {arrow.get('xanchor', 'center')}{'' if on_phones else ' second'}"
    return f'<text class="{style}" {place}>{_clean_text(arrow["text"])}</text>'


def _clean_text(text: str) -> str:
    """Plotly's texts are escaped for the little markup that it reads: escape them once, for SVG."""
    return escape(unescape(text))
