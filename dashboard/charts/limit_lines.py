"""A series' limit in its trend: a line at the bound, or its name at the edge beyond which it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from dashboard.charts import theme
from dashboard.charts.trend_axes import CommitAxis, ValueAxis
from dashboard.sentences.formatting import numbers


@dataclass(frozen=True, slots=True)
class TrendLimit:
    """The bound that held at a position, in the unit of the series; one side or both."""

    position: int
    minimum: float | None
    maximum: float | None


def draw_limits(
    figure: theme.Figure,
    limits: Sequence[TrendLimit],
    commits: CommitAxis,
    values: ValueAxis,
    shown: Sequence[float],
) -> None:
    """The bounds over the positions at which they held, up to the end; `shown` is the range of the axis."""
    end = commits.ends[1]
    for side, word in ((0, "least"), (1, "most")):
        starts = [commits.place_position(limit.position - 0.5) for limit in limits]
        bounds = [(limit.minimum, limit.maximum)[side] for limit in limits]
        spans = list(zip(starts, [*starts[1:], end], bounds, strict=False))
        for bound, group in groupby(spans, key=lambda span: span[2]):
            if bound is None:
                continue
            same = list(group)
            text = f"limit: at {word} {numbers.format_quantity(bound, values.unit)}"
            height = values.scale_value(bound)
            _draw_bound(figure, (same[0][0], same[-1][1]), height, shown)
            if same[-1] is spans[-1]:
                _name_bound(figure, height, text, shown)


def _draw_bound(
    figure: theme.Figure, span: tuple[float, float], height: float, shown: Sequence[float]
) -> None:
    if shown[0] <= height <= shown[1]:
        line = {"color": theme.WORSE, "width": 1.5, "dash": "longdash"}
        theme.add_shape(figure, type="line", x0=span[0], x1=span[1], y0=height, y1=height, line=line)


def _name_bound(figure: theme.Figure, height: float, text: str, shown: Sequence[float]) -> None:
    inside, above = shown[0] <= height <= shown[1], height > shown[1]
    arrow = "" if inside else " \N{UPWARDS ARROW}" if above else " \N{DOWNWARDS ARROW}"
    theme.add_annotation(
        figure,
        x=1,
        xref="paper",
        y=height if inside else shown[1] if above else shown[0],
        text=text + arrow,
        showarrow=False,
        xanchor="right",
        yanchor="top" if above else "bottom",
        font={"color": theme.WORSE, "size": 11},
    )
