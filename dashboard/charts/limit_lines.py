"""A series' limit in its trend: a line at the bound, or its name at the edge beyond which it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from dashboard.charts import theme
from dashboard.sentences import numbers

# A bound that would make the drawing higher than so many times the values' own height isn't drawn in it.
FARTHEST = 2.5


@dataclass(frozen=True, slots=True)
class TrendLimit:
    """The bound that held at a position, in the unit of the series; one side or both."""

    position: int
    minimum: float | None
    maximum: float | None


def extend_range(low: float, high: float, limits: Sequence[TrendLimit], size: float) -> tuple[float, float]:
    """`low` and `high` of an axis in units of `size`, widened to the bounds that are near."""
    height = high - low
    for bound in {side / size for limit in limits for side in _limit_sides(limit) if side is not None}:
        if max(high, bound) - min(low, bound) <= FARTHEST * height:
            low, high = min(low, bound), max(high, bound)
    return low, high


def _limit_sides(limit: TrendLimit) -> tuple[float | None, float | None]:
    return limit.minimum, limit.maximum


def draw_limits(
    figure: theme.Figure,
    limits: Sequence[TrendLimit],
    unit: str,
    size: float,
    end: float,
    shown: Sequence[float],
) -> None:
    """The bounds over the positions at which they held, up to `end`; `shown` is the range of the axis."""
    for side, word in ((0, "least"), (1, "most")):
        steps = [(limit.position - 0.5, _limit_sides(limit)[side]) for limit in limits]
        ends = [*(start for start, _ in steps[1:]), *([end] if steps else ())]
        spans = [(start, stop, bound) for (start, bound), stop in zip(steps, ends, strict=True)]
        for bound, group in groupby(spans, key=lambda span: span[2]):
            if bound is None:
                continue
            same = list(group)
            start, stop, last = same[0][0], same[-1][1], same[-1] is spans[-1]
            text = f"limit: at {word} {numbers.format_quantity(bound, unit)}"
            _draw_bound(figure, start, stop, bound / size, text, shown, last=last)


def _draw_bound(
    figure: theme.Figure,
    start: float,
    stop: float,
    height: float,
    text: str,
    shown: Sequence[float],
    *,
    last: bool,
) -> None:
    inside = shown[0] <= height <= shown[1]
    if inside:
        line = {"color": theme.WORSE, "width": 1.5, "dash": "longdash"}
        theme.add_shape(figure, type="line", x0=start, x1=stop, y0=height, y1=height, line=line)
    if last:
        above = height > shown[1]
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
