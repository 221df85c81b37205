"""How fast a machine was over time: its calibration loop, and the same commits measured again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from dashboard.charts import theme
from dashboard.sentences.formatting import numbers

HEIGHT = 240
# What is drawn flat: a range of so much of the median, however little the values vary.
LEAST_RANGE = 0.1
LEAST_PERIOD = timedelta(hours=1)
ROOM = 0.08
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "pentagon", "hexagon", "star")


@dataclass(frozen=True, slots=True)
class CalibrationMark:
    """What the calibration loop took in one run, in seconds; `drifted`: it changed within the run."""

    at: datetime
    seconds: float
    drifted: bool
    run: int
    url: str


@dataclass(frozen=True, slots=True)
class SentinelMark:
    """One measurement of a sentinel: its step time in seconds."""

    at: datetime
    seconds: float
    tainted: bool
    run: int
    url: str


@dataclass(frozen=True, slots=True)
class SentinelLine:
    """A sentinel's measurements, oldest first; `level` is their median, which they are drawn against."""

    name: str
    hue: int
    level: float
    marks: Sequence[SentinelMark]


def draw_calibration(marks: Sequence[CalibrationMark]) -> theme.Figure:
    """Draw at least one run, oldest first. A run in which the loop drifted is a cross."""
    level = median(mark.seconds for mark in marks)
    scaled = numbers.choose_scale("s", level)
    values = [mark.seconds / scaled.size for mark in marks]
    trace = theme.scatter_trace(
        x=[mark.at for mark in marks],
        y=values,
        name="calibration",
        mode="markers",
        marker={
            "color": [theme.DOUBT if mark.drifted else theme.LINE for mark in marks],
            "symbol": ["x-thin-open" if mark.drifted else "circle" for mark in marks],
            "size": [9 if mark.drifted else 5 for mark in marks],
            "line": {"width": [2 if mark.drifted else 0 for mark in marks]},
        },
        text=[_calibration_hover(mark, level) for mark in marks],
        customdata=[mark.url for mark in marks],
        hovertemplate="%{text}<extra></extra>",
    )
    figure = theme.create_figure(
        [trace],
        HEIGHT,
        xaxis=_time_axis([mark.at for mark in marks]),
        yaxis={"title": {"text": scaled.unit}, "range": _value_range(values, level / scaled.size)},
    )
    _draw_level(figure, level / scaled.size)
    return figure


def draw_sentinels(lines: Sequence[SentinelLine]) -> theme.Figure:
    """Draw at least one sentinel with a measurement, each in per cent of its own median."""
    traces = [_sentinel_trace(line) for line in lines]
    heights = [height for trace in traces for height in trace["y"]]
    figure = theme.create_figure(
        traces,
        HEIGHT,
        xaxis=_time_axis([mark.at for line in lines for mark in line.marks]),
        yaxis={
            "title": {"text": "step time against its median"},
            "ticksuffix": " %",
            "range": _value_range(heights, 0.0, least=100 * LEAST_RANGE),
        },
    )
    _draw_level(figure, 0.0)
    return figure


def _sentinel_trace(line: SentinelLine) -> theme.Trace:
    """Shape and colour both say which one it is; a tainted measurement is hollow."""
    symbol = SYMBOLS[line.hue % len(SYMBOLS)]
    colour = theme.HUES[line.hue % len(theme.HUES)]
    return theme.scatter_trace(
        x=[mark.at for mark in line.marks],
        y=[100 * (mark.seconds / line.level - 1) for mark in line.marks],
        name=theme.escape_markup(line.name),
        mode="lines+markers",
        line={"color": colour, "width": 1.5},
        marker={
            "color": colour,
            "size": 7,
            "symbol": [f"{symbol}-open" if mark.tainted else symbol for mark in line.marks],
        },
        text=[_sentinel_hover(line, mark) for mark in line.marks],
        customdata=[mark.url for mark in line.marks],
        hovertemplate="%{text}<extra></extra>",
    )


def _calibration_hover(mark: CalibrationMark, level: float) -> str:
    drifted = "<br>changed its speed while it measured" if mark.drifted else ""
    change = numbers.format_percent_change(mark.seconds / level)
    value = numbers.format_quantity(mark.seconds, "s")
    return f"<b>{value}</b>, {change} of the median<br>run {mark.run}, {_moment_text(mark.at)}{drifted}"


def _sentinel_hover(line: SentinelLine, mark: SentinelMark) -> str:
    tainted = "<br>tainted: not judged" if mark.tainted else ""
    change = numbers.format_percent_change(mark.seconds / line.level)
    value = numbers.format_quantity(mark.seconds, "s")
    name = theme.escape_markup(line.name)
    return f"<b>{change}</b>, {value}<br>{name}<br>run {mark.run}, {_moment_text(mark.at)}{tainted}"


def _moment_text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _time_axis(moments: Sequence[datetime]) -> dict[str, object]:
    axis: dict[str, object] = {"type": "date", "showgrid": False}
    missing = LEAST_PERIOD - (max(moments) - min(moments))
    if missing > timedelta(0):
        # Else a single run is labelled with parts of its second.
        axis["range"] = [min(moments) - missing / 2, max(moments) + missing / 2]
    return axis


def _draw_level(figure: theme.Figure, height: float) -> None:
    theme.add_level_line(figure, height)


def _value_range(values: Sequence[float], middle: float, least: float | None = None) -> list[float]:
    """Around all values, at least `least` high, else a part of `middle`: noise isn't drawn as mountains."""
    lowest = LEAST_RANGE * abs(middle) if least is None else least
    low = min(*values, middle - lowest / 2, middle)
    high = max(*values, middle + lowest / 2, middle)
    room = ROOM * (high - low)
    return [low - room, high + room]
