"""One look for every figure. Colours are CSS custom properties: the page's script puts in their values,
so a figure follows light and dark without being made twice.

A figure is a plain dictionary: plotly's own objects check every property again, which costs a page 100 ms.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

import numpy as np
import orjson

Trace: TypeAlias = dict[str, Any]


class Figure(TypedDict):
    """What the page's script gives to plotly.js; arrays are numpy's."""

    data: list[Trace]
    layout: dict[str, Any]


INK = "var(--ink)"
MUTED = "var(--ink-muted)"
FAINT = "var(--chart-faint)"
GRID = "var(--chart-grid)"
SURFACE = "var(--surface)"
LINE = "var(--chart-line)"
BAND = "var(--chart-band)"
WINDOW = "var(--chart-window)"
WORSE = "var(--worse)"
BETTER = "var(--better)"
DOUBT = "var(--doubt)"
# Eight hues that stay apart under the common kinds of colour blindness (after Okabe and Ito).
HUES = tuple(f"var(--hue-{index})" for index in range(1, 9))

MONO = "var(--mono)"


AXIS: Mapping[str, object] = {
    "gridcolor": GRID,
    "linecolor": GRID,
    "zeroline": False,
    "ticks": "",
    "tickfont": {"color": MUTED, "size": 11},
    "title": {"font": {"color": MUTED, "size": 12}, "standoff": 8},
    "automargin": True,
    "fixedrange": False,
}
TEMPLATE: Mapping[str, object] = {
    "layout": {
        "font": {"color": INK, "size": 12},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "colorway": list(HUES),
        "margin": {"l": 8, "r": 12, "t": 12, "b": 8},
        "xaxis": AXIS,
        "yaxis": AXIS,
        "hoverlabel": {
            "bgcolor": SURFACE,
            "bordercolor": GRID,
            "font": {"color": INK, "size": 12},
            "align": "left",
        },
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "font": {"color": MUTED}},
        "hovermode": "closest",
        "bargap": 0.15,
    }
}
# What may stand in JSON inside a script tag; JSON has these in strings alone.
SCRIPT_ESCAPES = {b"&": b"\\u0026", b"<": b"\\u003c", b">": b"\\u003e"}


def create_figure(traces: Sequence[Trace], height: int, **layout: object) -> Figure:
    """A figure in the site's look, `height` pixels high and as wide as its place on the page."""
    return {
        "data": list(traces),
        "layout": {"template": TEMPLATE, "height": height, "showlegend": False, **layout},
    }


def scatter_trace(**attributes: object) -> Trace:
    return {"type": "scatter", **attributes}


def bar_trace(**attributes: object) -> Trace:
    return {"type": "bar", **attributes}


def add_shape(figure: Figure, **shape: object) -> None:
    figure["layout"].setdefault("shapes", []).append(shape)


def add_annotation(figure: Figure, **annotation: object) -> None:
    figure["layout"].setdefault("annotations", []).append(annotation)


def add_level_line(figure: Figure, height: float) -> None:
    """A dotted line across the whole drawing, which values are read against."""
    line = {"color": MUTED, "width": 1, "dash": "dot"}
    add_shape(figure, type="line", x0=0, x1=1, xref="x domain", y0=height, y1=height, line=line)


def figure_json(figure: Figure) -> str:
    """The figure as JSON that may stand inside a script tag."""
    body = orjson.dumps(figure, default=_encode_array)
    # Not by `str.translate`, which looks at each character by itself.
    for character, escape in SCRIPT_ESCAPES.items():
        body = body.replace(character, escape)
    return body.decode()


def _encode_array(value: object) -> object:
    """An array as plotly.js reads it without parsing numbers: its bytes, little-endian."""
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, np.ndarray):
        raise TypeError(f"A figure holds no {type(value).__name__}.")
    if value.dtype == np.int64:
        # Browsers read integers of 64 bits as what JSON can't hold.
        value = value.astype(np.int32 if np.abs(value).max(initial=0) < 2**31 else np.float64)
    kind = value.dtype.kind + str(value.dtype.itemsize)
    return {"dtype": kind, "bdata": base64.b64encode(value.tobytes()).decode()}


def escape_markup(text: str) -> str:
    """Text that plotly shows as it is: it reads a little HTML in labels, and ours come from repositories."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
