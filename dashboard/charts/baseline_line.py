"""The baseline of a series in its trend: a line, which the legend names, or its name at the edge beyond which
it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.charts import theme

LONGEST_LABEL = 30


@dataclass(frozen=True, slots=True)
class TrendBaseline:
    """A value that points are read against, in the unit of the series, and what it is called."""

    value: float
    label: str


def draw_baseline(
    figure: theme.Figure, baseline: TrendBaseline, height: float, shown: Sequence[float]
) -> None:
    """Across the whole drawing; `shown` is the range of the axis, on which its value stands at `height`."""
    if shown[0] <= height <= shown[1]:
        line = {"color": theme.INK, "width": 1.5, "dash": "dash"}
        theme.add_shape(figure, type="line", x0=0, x1=1, xref="paper", y0=height, y1=height, line=line)
        return
    above = height > shown[1]
    arrow = "\N{UPWARDS ARROW}" if above else "\N{DOWNWARDS ARROW}"
    theme.add_annotation(
        figure,
        x=0,
        xref="paper",
        y=shown[1] if above else shown[0],
        text=f"{theme.escape_markup(baseline.label[:LONGEST_LABEL])} {arrow}",
        showarrow=False,
        xanchor="left",
        yanchor="top" if above else "bottom",
        font={"color": theme.INK, "size": 11},
    )
