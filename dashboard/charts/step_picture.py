"""A small picture of a step: for mails and chats, which run no script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.charts.canvas import (
    BAD,
    DOUBTFUL,
    GOOD,
    GRID,
    INK,
    MUTED,
    Canvas,
    PngCanvas,
    fit_text,
    text_width,
)
from dashboard.sentences import numbers

WIDTH, HEIGHT = 600, 240
PLOT_LEFT, PLOT_TOP, PLOT_RIGHT, PLOT_BOTTOM = 78, 42, 586, 212
LINE_WIDTH, DOT_RADIUS = 3, 3
TITLE_SIZE, LABEL_SIZE = 15, 12
TICKS = 3

Level = tuple[float, float]


@dataclass(frozen=True, slots=True)
class PicturePoint:
    position: int
    value: float
    tainted: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """Where positions and values lie in the picture, in its pixels."""

    first: int
    last: int
    low: float
    high: float

    def x(self, position: float) -> float:
        share = (position - self.first) / max(1, self.last - self.first)
        return PLOT_LEFT + share * (PLOT_RIGHT - PLOT_LEFT)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return PLOT_BOTTOM - share * (PLOT_BOTTOM - PLOT_TOP)


def plot_of(points: Sequence[PicturePoint], levels: Level) -> Plot:
    """Room for all judged points and both levels, and a margin."""
    judged = [point.value for point in points if not point.tainted]
    low, high = min([*judged, *levels]), max([*judged, *levels])
    margin = 0.12 * (high - low) or 0.1 * abs(high) or 1.0
    return Plot(points[0].position, points[-1].position, low - margin, high + margin)


def draw_step_picture(
    points: Sequence[PicturePoint],
    *,
    step: tuple[int, int],
    levels: Level,
    unit: str,
    title: str,
    change: str,
    canvas: Canvas | None = None,
) -> bytes:
    """`step` holds the positions of the last good and the first bad commit; `points` are two or more.

    Drawn on a canvas of WIDTH and HEIGHT; without one as a PNG.
    """
    plot = plot_of(points, levels)
    paper = canvas or PngCanvas(WIDTH, HEIGHT)
    _draw_grid(paper, plot, unit)
    _draw_levels(paper, plot, step, levels)
    for point in points:
        _draw_point(paper, plot, point, point.position >= step[1])
    paper.write_text((WIDTH - 14, 12), change, BAD, TITLE_SIZE, "rt")
    room = WIDTH - 40 - text_width(change, TITLE_SIZE)
    paper.write_text((14, 12), fit_text(title, TITLE_SIZE, room), INK, TITLE_SIZE, "lt")
    return paper.encode()


def _draw_grid(canvas: Canvas, plot: Plot, unit: str) -> None:
    scaled = numbers.choose_scale(unit, max(abs(plot.low), abs(plot.high)))
    for tick in range(TICKS):
        value = plot.low + (tick + 0.5) / TICKS * (plot.high - plot.low)
        height = plot.y(value)
        canvas.draw_line([(PLOT_LEFT, height), (PLOT_RIGHT, height)], GRID, 1)
        label = f"{numbers.format_number(value / scaled.size)} {scaled.unit}".strip()
        canvas.write_text((PLOT_LEFT - 8, height), label, MUTED, LABEL_SIZE, "rm")
    canvas.write_text((PLOT_LEFT, PLOT_BOTTOM + 8), "older commits", MUTED, LABEL_SIZE, "lt")
    canvas.write_text((PLOT_RIGHT, PLOT_BOTTOM + 8), "newer", MUTED, LABEL_SIZE, "rt")


def _draw_levels(canvas: Canvas, plot: Plot, step: tuple[int, int], levels: Level) -> None:
    """Both levels, and the rise between them where it happened."""
    (good, bad), (before, after) = step, levels
    edge = min(max(plot.x((good + bad) / 2), PLOT_LEFT), PLOT_RIGHT)
    canvas.draw_line([(edge, PLOT_TOP), (edge, PLOT_BOTTOM)], MUTED, 1)
    canvas.draw_line([(PLOT_LEFT, plot.y(before)), (edge, plot.y(before))], GOOD, LINE_WIDTH)
    canvas.draw_line([(edge, plot.y(after)), (PLOT_RIGHT, plot.y(after))], BAD, LINE_WIDTH)


def _draw_point(canvas: Canvas, plot: Plot, point: PicturePoint, is_bad: bool) -> None:
    """Hollow where it is tainted; what lies outside then is drawn at the edge."""
    y = min(max(plot.y(point.value), PLOT_TOP), PLOT_BOTTOM)
    colour = DOUBTFUL if point.tainted else BAD if is_bad else GOOD
    canvas.draw_dot((plot.x(point.position), y), DOT_RADIUS, colour, hollow=point.tainted)
