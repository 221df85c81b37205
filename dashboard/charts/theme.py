"""One look for every figure. Colours are CSS custom properties: the page's script puts in their values,
so a figure follows light and dark without being made twice."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
import plotly.io as pio

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

FONT = "var(--font)"
MONO = "var(--mono)"


def _create_template() -> go.layout.Template:
    axis = {
        "gridcolor": GRID,
        "linecolor": GRID,
        "zeroline": False,
        "ticks": "",
        "tickfont": {"color": MUTED, "size": 11},
        "title": {"font": {"color": MUTED, "size": 12}, "standoff": 8},
        "automargin": True,
        "fixedrange": False,
    }
    return go.layout.Template(
        layout={
            "font": {"color": INK, "size": 12},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": list(HUES),
            "margin": {"l": 8, "r": 12, "t": 12, "b": 8},
            "xaxis": axis,
            "yaxis": axis,
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
    )


TEMPLATE = _create_template()


def create_figure(traces: Sequence[object], height: int, **layout: object) -> go.Figure:
    """A figure in the site's look, `height` pixels high and as wide as its place on the page."""
    return go.Figure(
        data=list(traces), layout={"template": TEMPLATE, "height": height, "showlegend": False, **layout}
    )


def figure_json(drawn: go.Figure) -> str:
    """The figure as JSON that may stand inside a script tag: plotly escapes `<`, `>` and `/`."""
    return str(pio.to_json(drawn, validate=False, engine="orjson"))


def escape_markup(text: str) -> str:
    """Text that plotly shows as it is: it reads a little HTML in labels, and ours come from repositories."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
