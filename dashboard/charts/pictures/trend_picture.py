"""A series over its commits as a picture: values, intervals, levels and steps, with both axes in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.charts.pictures.canvas import (
    BAD,
    BAND,
    DOUBTFUL,
    GOOD,
    GRID,
    INK,
    MUTED,
    At,
    Canvas,
    fit_text,
    text_width,
)
from dashboard.charts.pictures.picture_ticks import LABEL_SIZE, choose_ticks, write_ticks

WIDTH, HEIGHT = 600, 315
LEFT, TOP, RIGHT, BOTTOM = 84, 66, 584, 278
UNIT_AT = (16, 44)
TITLE_SIZE = 15
TICKS = 4
# More points than this are a line without dots.
MOST_DOTS = 120


@dataclass(frozen=True, slots=True)
class DrawnPoint:
    position: int
    value: float
    low: float | None = None
    high: float | None = None
    tainted: bool = False


@dataclass(frozen=True, slots=True)
class DrawnLevel:
    """A level from one position to another; `is_worse` where it began by a regression."""

    first: int
    last: int
    value: float
    is_worse: bool


@dataclass(frozen=True, slots=True)
class TrendWords:
    """`newest`: the newest value; `verdict` beside it; `ends`: the first and the last commit."""

    title: str
    newest: str
    verdict: str
    is_bad: bool
    ends: tuple[str, str]


class _Plot:
    """Where positions and values lie; tainted points have no say in it."""

    def __init__(self, points: Sequence[DrawnPoint], levels: Sequence[DrawnLevel]) -> None:
        judged = [point for point in points if not point.tainted] or list(points)
        bounds = [bound for point in judged for bound in (point.low, point.high) if bound is not None]
        values = [*(point.value for point in judged), *bounds, *(level.value for level in levels)]
        margin = 0.1 * (max(values) - min(values)) or 0.1 * abs(max(values)) or 1.0
        self.low, self.high = min(values) - margin, max(values) + margin
        self.first, self.last = points[0].position, points[-1].position

    def locate(self, position: float, value: float) -> At:
        """What lies outside is drawn at the edge."""
        span = max(1, self.last - self.first)
        x = LEFT + (position - self.first) / span * (RIGHT - LEFT)
        y = BOTTOM - (value - self.low) / (self.high - self.low) * (BOTTOM - TOP)
        return min(max(x, LEFT), RIGHT), min(max(y, TOP), BOTTOM)


def draw_trend_picture(
    canvas: Canvas,
    points: Sequence[DrawnPoint],
    levels: Sequence[DrawnLevel],
    unit: str,
    words: TrendWords,
) -> bytes:
    """Draw at least one point, oldest first, on a canvas of WIDTH and HEIGHT."""
    plot = _Plot(points, levels)
    _draw_grid(canvas, plot, unit)
    judged = [point for point in points if not point.tainted]
    _draw_band(canvas, plot, judged)
    dotted = len(points) <= MOST_DOTS
    if len(judged) > 1:
        colour = DOUBTFUL if dotted else GOOD
        canvas.draw_line([plot.locate(point.position, point.value) for point in judged], colour, 1)
    for level in levels:
        ends = [plot.locate(level.first, level.value), plot.locate(level.last, level.value)]
        canvas.draw_line(ends, BAD if level.is_worse else GOOD, 2.5)
    if dotted:
        for point in points:
            colour = DOUBTFUL if point.tainted else GOOD
            canvas.draw_dot(plot.locate(point.position, point.value), 2.5, colour, hollow=point.tainted)
    _write_words(canvas, words)
    return canvas.encode()


def draw_empty_picture(canvas: Canvas, title: str) -> bytes:
    canvas.write_text((16, 14), fit_text(title, TITLE_SIZE, WIDTH - 32), INK, TITLE_SIZE, "lt")
    canvas.write_text((WIDTH / 2, HEIGHT / 2), "not measured yet", MUTED, TITLE_SIZE, "mm")
    return canvas.encode()


def _draw_grid(canvas: Canvas, plot: _Plot, unit: str) -> None:
    values = choose_ticks(plot.low, plot.high, unit, TICKS)
    ticks = [(value, plot.locate(plot.first, value)[1]) for value in values]
    for _, height in ticks:
        canvas.draw_line([(LEFT, height), (RIGHT, height)], GRID, 1)
    write_ticks(canvas, ticks, unit, LEFT, UNIT_AT)


def _draw_band(canvas: Canvas, plot: _Plot, points: Sequence[DrawnPoint]) -> None:
    known = [point for point in points if point.low is not None and point.high is not None]
    if len(known) > 1:
        above = [plot.locate(point.position, point.high or 0.0) for point in known]
        below = [plot.locate(point.position, point.low or 0.0) for point in reversed(known)]
        canvas.draw_area([*above, *below], BAND)


def _write_words(canvas: Canvas, words: TrendWords) -> None:
    room = WIDTH - 48 - text_width(words.newest, TITLE_SIZE)
    canvas.write_text((16, 14), fit_text(words.title, TITLE_SIZE, room), INK, TITLE_SIZE, "lt")
    canvas.write_text((RIGHT, 14), words.newest, INK, TITLE_SIZE, "rt")
    canvas.write_text((RIGHT, 38), words.verdict, BAD if words.is_bad else MUTED, LABEL_SIZE, "rt")
    canvas.write_text((LEFT, BOTTOM + 12), words.ends[0], MUTED, LABEL_SIZE, "lt")
    if words.ends[1] != words.ends[0]:
        canvas.write_text((RIGHT, BOTTOM + 12), words.ends[1], MUTED, LABEL_SIZE, "rt")
