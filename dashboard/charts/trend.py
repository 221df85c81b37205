"""A series over the commits of its branch: values, repetitions, doubt, levels, and changes between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dashboard.charts import limit_lines, theme
from dashboard.charts.baseline_line import TrendBaseline, draw_baseline
from dashboard.charts.limit_lines import TrendLimit
from dashboard.sentences import numbers

HEIGHT = 400
MOST_LABELS = 8
LONGEST_MARKER = 24
# Above and below the drawn values, as a share of their range; arrows need the room.
ARROW_ROOM = 0.28


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """One run's value. `samples` are its repetitions; all in the unit of the series."""

    position: int
    value: float
    low: float | None
    high: float | None
    samples: Sequence[float]
    tainted: bool
    commit: str
    subject: str
    url: str


@dataclass(frozen=True, slots=True)
class TrendChange:
    """A step between two levels, `size` in words; `url` leads to its regression, if it has one."""

    position: int
    before: float
    after: float
    size: str
    worse: bool
    url: str = ""


@dataclass(frozen=True, slots=True)
class TrendMarker:
    """What changed around the code before the point at `position`, such as `kernel`."""

    position: int
    text: str


def draw_trend(
    points: Sequence[TrendPoint],
    changes: Sequence[TrendChange],
    unit: str,
    level: float | None = None,
    *,
    markers: Sequence[TrendMarker] = (),
    limits: Sequence[TrendLimit] = (),
    height: int = HEIGHT,
    baseline: TrendBaseline | None = None,
) -> theme.Figure:
    """Draw at least one point, oldest first; `level` is the level where no change was found."""
    scaled = numbers.choose_scale(unit, max(abs(point.value) for point in points))
    x = np.array([point.position for point in points], dtype=np.int32)
    y = np.array([point.value for point in points]) / scaled.size
    traces = [
        *_interval_traces(points, x, scaled.size),
        _repetition_trace(points, scaled.size),
        _level_trace(points, changes, level, scaled.size),
        _value_trace(points, x, y, unit),
    ]
    # A baseline takes room as a bound does, where it is near.
    near = [TrendLimit(0, None, baseline.value)] if baseline else []
    shown = _value_range(points, scaled.size, [*limits, *near])
    drawn = theme.create_figure(
        traces,
        height,
        margin={"l": 8, "r": 30, "t": 12, "b": 8},
        xaxis={
            **_commit_ticks(points),
            "range": _position_range(x),
            "title": {"text": "commit"},
            "showgrid": False,
        },
        yaxis={"title": {"text": scaled.unit}, "range": shown},
    )
    limit_lines.draw_limits(drawn, limits, unit, scaled.size, _position_range(x)[1], shown)
    if baseline:
        draw_baseline(drawn, baseline, scaled.size, shown)
    for change in changes:
        if points[0].position <= change.position <= points[-1].position:
            theme.add_annotation(drawn, **_change_arrow(change, points, scaled.size))
    for marker in markers:
        _draw_marker(drawn, marker)
    return drawn


def _value_trace(points: Sequence[TrendPoint], x: np.ndarray, y: np.ndarray, unit: str) -> theme.Trace:
    """The line. A tainted point is an open cross, so that shape tells it and not colour alone."""
    return theme.scatter_trace(
        x=x,
        y=y,
        name="value",
        mode="lines+markers",
        line={"color": theme.LINE, "width": 1.5},
        marker={
            "color": [theme.MUTED if point.tainted else theme.LINE for point in points],
            "symbol": ["x-thin-open" if point.tainted else "circle" for point in points],
            "size": [9 if point.tainted else 6 for point in points],
            "line": {"width": [1.5 if point.tainted else 0 for point in points]},
        },
        text=[_point_hover(point, unit) for point in points],
        customdata=[point.url for point in points],
        hovertemplate="%{text}<extra></extra>",
    )


def _point_hover(point: TrendPoint, unit: str) -> str:
    value = numbers.format_quantity(point.value, unit)
    interval = numbers.format_interval(point.low, point.high, unit)
    commit = f"{theme.escape_markup(point.commit)}  {theme.escape_markup(_shorten_text(point.subject))}"
    tainted = "<br>tainted: kept out of judgement" if point.tainted else ""
    return f"<b>{value}</b> {interval}<br>{commit}{tainted}"


def _interval_traces(points: Sequence[TrendPoint], x: np.ndarray, size: float) -> list[theme.Trace]:
    """The interval of each value; where one is unknown the band has a gap."""
    if all(point.low is None or point.high is None for point in points):
        return []
    low = np.array([np.nan if point.low is None else point.low / size for point in points])
    high = np.array([np.nan if point.high is None else point.high / size for point in points])
    common = {"x": x, "mode": "lines", "line": {"width": 0, "color": theme.BAND}, "hoverinfo": "skip"}
    return [
        theme.scatter_trace(y=low, name="interval, low", **common),
        theme.scatter_trace(y=high, name="interval", fill="tonexty", fillcolor=theme.BAND, **common),
    ]


def _repetition_trace(points: Sequence[TrendPoint], size: float) -> theme.Trace:
    counts = [len(point.samples) for point in points]
    return theme.scatter_trace(
        x=np.repeat(np.array([point.position for point in points], dtype=np.int32), counts),
        y=np.array([sample for point in points for sample in point.samples]) / size,
        name="repetitions",
        mode="markers",
        marker={"color": theme.FAINT, "size": 4},
        hoverinfo="skip",
    )


def _level_trace(
    points: Sequence[TrendPoint], changes: Sequence[TrendChange], level: float | None, size: float
) -> theme.Trace:
    """One horizontal line per level, in one trace with gaps between."""
    first, last = points[0].position, points[-1].position
    xs: list[float] = []
    ys: list[float] = []
    for start, end, height in _level_segments(changes, level, last):
        if height is not None and end >= first:
            xs += [max(start, first - 0.5), min(end, last + 0.5), np.nan]
            ys += [height / size, height / size, np.nan]
    return theme.scatter_trace(
        x=np.array(xs),
        y=np.array(ys),
        name="level",
        mode="lines",
        line={"color": theme.INK, "width": 1.5, "dash": "dot"},
        hoverinfo="skip",
        connectgaps=False,
    )


def _level_segments(
    changes: Sequence[TrendChange], level: float | None, last: int
) -> list[tuple[float, float, float | None]]:
    """(start, end, height) of each level, from before the first change to after the last."""
    if not changes:
        return [(-np.inf, last + 0.5, level)]
    between = [(now.position - 0.5, later.position - 0.5, now.after) for now, later in pairwise(changes)]
    return [
        (-np.inf, changes[0].position - 0.5, changes[0].before),
        *between,
        (changes[-1].position - 0.5, last + 0.5, changes[-1].after),
    ]


def _change_arrow(change: TrendChange, points: Sequence[TrendPoint], size: float) -> dict[str, object]:
    """Word, sign and arrow say what the colour says."""
    colour = theme.WORSE if change.worse else theme.BETTER
    text = f"{'worse' if change.worse else 'better'} {change.size}"
    above = change.after >= change.before
    # Clear of the first value of the new level, which may stand far from that level.
    near = [change.after, *(point.value for point in points if point.position == change.position)]
    return {
        "x": change.position,
        "y": (max(near) if above else min(near)) / size,
        "text": f'<a href="{change.url}" target="_self">{text}</a>' if change.url else text,
        "font": {"color": colour, "size": 12},
        "arrowcolor": colour,
        "arrowhead": 2,
        "arrowsize": 1,
        "arrowwidth": 1.5,
        "ax": 0,
        "ay": -30 if above else 30,
        "standoff": 6,
        "bgcolor": theme.SURFACE,
        "borderpad": 2,
        "captureevents": bool(change.url),
    }


def _draw_marker(drawn: theme.Figure, marker: TrendMarker) -> None:
    """A line between two points: what is left and right of it was measured under other circumstances."""
    x = marker.position - 0.5
    line = {"color": theme.MUTED, "width": 1, "dash": "dash"}
    theme.add_shape(drawn, type="line", x0=x, x1=x, y0=0, y1=1, yref="paper", line=line, layer="below")
    theme.add_annotation(
        drawn,
        x=x,
        y=0,
        yref="paper",
        # By this name the page's script finds it: only there the width is known, and which labels overlap.
        name="marker",
        text=theme.escape_markup(_shorten_text(marker.text, LONGEST_MARKER)),
        showarrow=False,
        xanchor="left",
        yanchor="bottom",
        bgcolor=theme.SURFACE,
        borderpad=0,
        font={"color": theme.MUTED, "size": 11},
    )


def _commit_ticks(points: Sequence[TrendPoint]) -> dict[str, object]:
    """A few commits by name, evenly spread, the newest among them."""
    names = {point.position: point.commit for point in points}
    positions = sorted(names)
    spacing = max(1, -(-len(positions) // MOST_LABELS))
    labelled = positions[::-1][::spacing][::-1]
    return {
        "tickvals": labelled,
        "ticklabeloverflow": "allow",
        "ticktext": [theme.escape_markup(names[position][:7]) for position in labelled],
        "tickfont": {"family": theme.MONO, "size": 11, "color": theme.MUTED},
    }


def _position_range(x: np.ndarray) -> list[float]:
    room = max(0.6, 0.025 * float(x[-1] - x[0]))
    return [float(x[0]) - room, float(x[-1]) + room]


def _value_range(points: Sequence[TrendPoint], size: float, limits: Sequence[TrendLimit]) -> list[float]:
    """Room for the arrows; a flat series is drawn flat, not as mountains of noise."""
    values = [value / size for point in points for value in (point.value, *point.samples)]
    low, high = min(values), max(values)
    least = 0.1 * max(abs(low), abs(high)) or 1.0
    if high - low < least:
        middle = (high + low) / 2
        low, high = middle - least / 2, middle + least / 2
    low, high = limit_lines.extend_range(low, high, limits, size)
    room = ARROW_ROOM * (high - low)
    # Zero is a floor for what can't be negative.
    return [low - room if low < 0 else max(0.0, low - room), high + room]


def _shorten_text(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
