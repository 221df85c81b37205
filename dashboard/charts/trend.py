"""A series over the commits of its branch: values, repetitions, doubt, levels, and what happened between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dashboard.charts import limit_lines, theme, trend_marks
from dashboard.charts.baseline_line import TrendBaseline, draw_baseline
from dashboard.charts.limit_lines import TrendLimit
from dashboard.charts.trend_axes import (
    CommitAxis,
    ValueAxis,
    choose_value_axis,
    commit_axis,
    commit_ticks,
)
from dashboard.charts.trend_marks import TrendChange, TrendFailure, TrendMarker, TrendStep
from dashboard.sentences.formatting import numbers

HEIGHT = 400
# Of more points the repetitions and the single values are left out: a line says as much, and moves at once.
MOST_MARKED = 250
LONGEST_SUBJECT = 60
LINE_DASHES = ("dash", "dot", "dashdot", "longdash")


class TrendPoint(NamedTuple):
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
    at: datetime | None = None
    # Why it is kept out of judgement, in words.
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class TrendLine:
    """Another line; `reference` is the value from which its changes are drawn, where changes are."""

    name: str
    points: Sequence[TrendPoint]
    reference: float | None = None


@dataclass(frozen=True, slots=True)
class Trend:
    """What is drawn: at least one point, oldest first, all in `unit`.

    `level` is the level where no change was found. `reference`, which isn't 0: values are drawn as changes
    from it, in percent. `thinned`: the points are some of more.
    """

    points: Sequence[TrendPoint]
    unit: str
    changes: Sequence[TrendChange] = ()
    level: float | None = None
    markers: Sequence[TrendMarker] = ()
    failures: Sequence[TrendFailure] = ()
    limits: Sequence[TrendLimit] = ()
    baseline: TrendBaseline | None = None
    lines: Sequence[TrendLine] = ()
    step: TrendStep | None = None
    reference: float | None = None
    by_date: bool = False
    thinned: bool = False
    clean: Sequence[TrendPoint] = field(init=False)

    def __post_init__(self) -> None:
        clean = [point for point in self.points if not point.tainted]
        object.__setattr__(self, "clean", clean)


def draw_trend(trend: Trend, height: int = HEIGHT) -> theme.Figure:
    values = choose_value_axis(trend.unit, max(abs(point.value) for point in trend.points), trend.reference)
    commits = _place_commits(trend)
    shown = _value_range(trend, values)
    drawn = theme.create_figure(
        [
            *_interval_traces(trend, commits, values),
            *_repetition_traces(trend, commits, values),
            _level_trace(trend, commits, values),
            *(_line_trace(line, order, trend, commits, values) for order, line in enumerate(trend.lines)),
            _value_trace(trend, commits, values),
            *_tainted_traces(trend, commits, values, shown),
            *trend_marks.failure_traces(trend.failures, commits, shown),
        ],
        height,
        margin={"l": 8, "r": 30, "t": 12, "b": 8},
        xaxis={**_describe_commits(trend, commits), "range": list(commits.ends), "showgrid": False},
        yaxis={"title": {"text": values.title}, "range": shown},
    )
    if trend.step:
        trend_marks.shade_step(drawn, trend.step, commits)
    limit_lines.draw_limits(drawn, trend.limits, commits, values, shown)
    if trend.baseline:
        draw_baseline(drawn, trend.baseline, values.scale_value(trend.baseline.value), shown)
    first, last = trend.points[0].position, trend.points[-1].position
    for change in trend_marks.order_labels(
        change for change in trend.changes if first <= change.position <= last
    ):
        near = [point.value for point in trend.clean if point.position == change.position]
        theme.add_annotation(drawn, **trend_marks.change_arrow(change, near, commits, values))
    for marker in trend.markers:
        trend_marks.draw_marker(drawn, marker, commits)
    return drawn


def _place_commits(trend: Trend) -> CommitAxis:
    """All that is drawn has a place; of dates those of the line's own points come first."""
    others = {failure.position: failure.at for failure in trend.failures}
    beside = {point.position: point.at for line in trend.lines for point in line.points}
    return commit_axis(
        {**beside, **others, **{point.position: point.at for point in trend.points}}, by_date=trend.by_date
    )


def _describe_commits(trend: Trend, commits: CommitAxis) -> dict[str, object]:
    if commits.by_date:
        return {"type": "date", "title": {"text": "date of the commit"}}
    return {
        **commit_ticks({point.position: point.commit for point in trend.points}),
        "title": {"text": "commit"},
    }


def _value_range(trend: Trend, values: ValueAxis) -> list[float]:
    """A baseline, limits, and what is tainted take room where they are near."""
    counting = trend.clean or trend.points
    own = [value for point in counting for value in (point.value, *(() if trend.thinned else point.samples))]
    others = [
        _drawn_from_reference(point.value, line, values) for line in trend.lines for point in line.points
    ]
    bounds = [
        bound for limit in trend.limits for bound in (limit.minimum, limit.maximum) if bound is not None
    ]
    baseline = [trend.baseline.value] if trend.baseline else []
    tainted = [point.value for point in trend.points if point.tainted]
    return values.find_range([*own, *others], [*bounds, *baseline, *tainted])


def _drawn_from_reference(value: float, line: TrendLine, values: ValueAxis) -> float:
    """The value that the page's own line has where this one of another line is drawn."""
    if values.reference is None or line.reference is None:
        return value
    return value / line.reference * values.reference


def _value_trace(trend: Trend, commits: CommitAxis, values: ValueAxis) -> theme.Trace:
    points = trend.clean
    marked = _has_marks(trend)
    return {
        "type": "scatter",
        **_located_points(points, commits, [point.value for point in points], values),
        "name": "value",
        "mode": "lines+markers" if marked else "lines",
        "line": {"color": theme.LINE, "width": 1.5},
        "marker": {"color": theme.LINE, "size": 6},
        "text": [
            _point_hover(point, trend.unit, trend.reference, has_subject=not trend.thinned)
            for point in points
        ],
    }


def _has_marks(trend: Trend) -> bool:
    return not trend.thinned and len(trend.points) <= MOST_MARKED


def _located_points(
    points: Sequence[TrendPoint], commits: CommitAxis, drawn: Sequence[float], values: ValueAxis
) -> theme.Trace:
    """Where they are, where a click on them leads, and the positions that the keyboard and a zoom go by."""
    positions = [point.position for point in points]
    return {
        "x": _place_points(points, commits),
        "y": _scale_shortly(drawn, values),
        "customdata": [point.url for point in points],
        "meta": {"positions": positions},
        "hovertemplate": "%{text}<extra></extra>",
    }


def _place_points(points: Sequence[TrendPoint], commits: CommitAxis) -> np.ndarray:
    """Commits in half the bytes; dates need all of theirs."""
    x = commits.place_positions([point.position for point in points])
    return x if commits.by_date else x.astype(np.int32)


def _scale_shortly(drawn: Sequence[float], values: ValueAxis) -> np.ndarray:
    """Half the bytes, and more digits than a drawing shows."""
    return values.scale_values(drawn).astype(np.float32)


def _point_hover(
    point: TrendPoint, unit: str, reference: float | None, name: str = "", *, has_subject: bool = True
) -> str:
    """Of many points only the hash of the commit: a page has no room for all subjects."""
    value = numbers.format_quantity(point.value, unit)
    interval = numbers.format_interval(point.low, point.high, unit)
    change = f", {numbers.format_percent_change(point.value / reference)}" if reference else ""
    subject = trend_marks.shorten_label(point.subject, LONGEST_SUBJECT) if has_subject else ""
    commit = theme.escape_markup(f"{point.commit}  {subject}".rstrip())
    beside = f"<br>{theme.escape_markup(name)}" if name else ""
    return f"<b>{value}</b>{change} {interval}<br>{commit}{beside}"


def _line_trace(
    line: TrendLine, order: int, trend: Trend, commits: CommitAxis, values: ValueAxis
) -> theme.Trace:
    """Differs from the others by its dashes as well as by its colour; the list below the chart names it."""
    drawn = [_drawn_from_reference(point.value, line, values) for point in line.points]
    own = commit_axis({point.position: point.at for point in line.points}, by_date=True)
    located = _located_points(line.points, own if commits.by_date else commits, drawn, values)
    return {
        "type": "scatter",
        **located,
        "name": line.name,
        "mode": "lines",
        "line": {
            "color": theme.HUES[(order + 1) % len(theme.HUES)],
            "width": 2,
            "dash": LINE_DASHES[order % len(LINE_DASHES)],
        },
        "text": [
            _point_hover(point, trend.unit, line.reference if trend.reference else None, line.name)
            for point in line.points
        ],
    }


def _tainted_traces(
    trend: Trend, commits: CommitAxis, values: ValueAxis, shown: Sequence[float]
) -> list[theme.Trace]:
    """Open crosses beside the line, so that shape tells them and not colour alone; what lies outside is drawn
    at the edge."""
    points = [point for point in trend.points if point.tainted]
    if not points:
        return []
    located = _located_points(points, commits, [point.value for point in points], values)
    return [
        {
            "type": "scatter",
            **located,
            "y": np.clip(located["y"], shown[0], shown[1]),
            "name": "tainted",
            "mode": "markers",
            "marker": {
                "color": theme.MUTED,
                "symbol": "x-thin-open",
                "size": 9,
                "line": {"width": 1.5},
            },
            "text": [_tainted_hover(point, trend) for point in points],
            "cliponaxis": False,
        }
    ]


def _tainted_hover(point: TrendPoint, trend: Trend) -> str:
    reason = f": {theme.escape_markup(point.doubt)}" if point.doubt else ""
    return f"{_point_hover(point, trend.unit, trend.reference)}<br>tainted, kept out of judgement{reason}"


def _interval_traces(trend: Trend, commits: CommitAxis, values: ValueAxis) -> list[theme.Trace]:
    """The interval of each value; where one is unknown the band has a gap."""
    points = trend.clean
    if all(point.low is None or point.high is None for point in points):
        return []
    low = [np.nan if point.low is None else point.low for point in points]
    high = [np.nan if point.high is None else point.high for point in points]
    common = {"type": "scatter", "x": _place_points(points, commits), "mode": "lines", "hoverinfo": "skip"}
    line = {"width": 0, "color": theme.BAND}
    return [
        {**common, "y": _scale_shortly(low, values), "name": "interval, low", "line": line},
        {
            **common,
            "y": _scale_shortly(high, values),
            "name": "interval",
            "line": line,
            "fill": "tonexty",
            "fillcolor": theme.BAND,
        },
    ]


def _repetition_traces(trend: Trend, commits: CommitAxis, values: ValueAxis) -> list[theme.Trace]:
    points = trend.clean
    if not _has_marks(trend):
        return []
    counts = [len(point.samples) for point in points]
    return [
        {
            "type": "scatter",
            "x": np.repeat(_place_points(points, commits), counts),
            "y": _scale_shortly([sample for point in points for sample in point.samples], values),
            "name": "repetitions",
            "mode": "markers",
            "marker": {"color": theme.FAINT, "size": 4},
            "hoverinfo": "skip",
        }
    ]


def _level_trace(trend: Trend, commits: CommitAxis, values: ValueAxis) -> theme.Trace:
    """One horizontal line per level, in one trace with gaps between."""
    first, last = trend.points[0].position, trend.points[-1].position
    xs: list[float] = []
    ys: list[float] = []
    for start, end, height in _level_segments(trend.changes, trend.level, last):
        if height is not None and end >= first:
            xs += [max(start, first - 0.5), min(end, last + 0.5), np.nan]
            ys += [height, height, np.nan]
    return {
        "type": "scatter",
        "x": commits.place_positions(xs),
        "y": values.scale_values(ys),
        "name": "level",
        "mode": "lines",
        "line": {"color": theme.INK, "width": 1.5, "dash": "dot"},
        "hoverinfo": "skip",
        "connectgaps": False,
    }


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
