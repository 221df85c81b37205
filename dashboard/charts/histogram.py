"""How long the steps of one repetition took."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dashboard.charts import axes, theme
from dashboard.sentences.formatting import numbers

HEIGHT = 240
# p50 stands to the left of its line and the others to the right, the last one a line above them: near marks
# don't write over each other.
PLACES = (("right", 0), ("left", 0), ("left", 13))


def draw_step_times(edges: Sequence[float], counts: Sequence[int], marks: dict[str, float]) -> theme.Figure:
    """`edges` in seconds, one more than `counts`; `marks` are percentiles such as p50, in seconds.

    The axis is logarithmic: a few steps (an evaluation, a copy of the target network) take a hundred times
    as long as the rest, and are the ones one looks for.
    """
    counted, bounds = _trim_empty_bins(np.array(counts, dtype=np.int64), np.array(edges, dtype=np.float64))
    scaled = numbers.choose_scale("s", marks.get("p50") or float(bounds.mean()))
    bounds = bounds / scaled.size
    bars = theme.scatter_trace(
        x=bounds,
        y=np.append(counted, 0),
        mode="lines",
        line={"color": theme.HUES[0], "width": 1, "shape": "hv"},
        fill="tozeroy",
        fillcolor=theme.HUES[0],
        text=[
            f"{numbers.format_number(low)} to {numbers.format_number(high)} {scaled.unit}"
            for low, high in pairwise(bounds)
        ],
        hovertemplate="%{text}<br>%{y} steps<extra></extra>",
    )
    drawn = theme.create_figure(
        [bars],
        HEIGHT,
        xaxis={
            "title": {"text": f"{scaled.unit} per step, logarithmic"},
            **axes.decade_axis(bounds[0], bounds[-1]),
        },
        yaxis={"title": {"text": "steps"}, "fixedrange": True, "rangemode": "tozero"},
        margin={"l": 8, "r": 12, "t": 37, "b": 8},
    )
    for (name, seconds), (side, raised) in zip(marks.items(), PLACES, strict=False):
        if seconds > 0:
            _mark_percentile(drawn, name, seconds / scaled.size, side, raised)
    return drawn


def _trim_empty_bins(counts: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Without the empty bins at both ends, and without an edge at 0, which a logarithm has no place for."""
    used = np.flatnonzero(counts)
    if used.size:
        first, last = int(used[0]), int(used[-1]) + 1
        counts, edges = counts[first:last], edges[first : last + 1]
    if edges[0] <= 0:
        edges[0] = edges[1] / 2
    return counts, edges


def _mark_percentile(drawn: theme.Figure, name: str, value: float, side: str, raised: int) -> None:
    common = {"xref": "x", "yref": "paper"}
    line = {"color": theme.INK, "width": 1, "dash": "dot"}
    theme.add_shape(drawn, type="line", x0=value, x1=value, y0=0, y1=1, line=line, **common)
    theme.add_annotation(
        drawn,
        # Unlike a shape, an annotation on a logarithmic axis is placed by the logarithm.
        x=float(np.log10(value)),
        y=1,
        text=name,
        showarrow=False,
        xanchor=side,
        yanchor="bottom",
        yshift=raised,
        font={"color": theme.MUTED, "size": 11},
        **common,
    )
