"""A small picture of a step: for mails and chats, which run no script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.charts.pictures.canvas import (
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
from dashboard.charts.pictures.picture_ticks import LABEL_SIZE, choose_ticks, write_ticks

WIDTH, HEIGHT = 600, 240
PLOT_LEFT, PLOT_TOP, PLOT_RIGHT, PLOT_BOTTOM = 78, 42, 586, 212
LINE_WIDTH, DOT_RADIUS = 3, 3
UNIT_AT = (14, 32)
TITLE_SIZE = 15
TICKS = 4

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
    repaired: int | None = None,
    canvas: Canvas | None = None,
) -> bytes:
    """`step` holds the positions of the last good and the first bad commit, `repaired` that of the commit
    that brought the level back; `points` are two or more.

    Drawn on a canvas of WIDTH and HEIGHT; without one as a PNG.
    """
    plot = plot_of(points, levels)
    paper = canvas or PngCanvas(WIDTH, HEIGHT)
    _draw_grid(paper, plot, unit)
    _draw_levels(paper, plot, step, levels, repaired)
    for point in points:
        is_bad = point.position >= step[1] and (repaired is None or point.position < repaired)
        _draw_point(paper, plot, point, is_bad)
    paper.write_text((WIDTH - 14, 12), change, BAD, TITLE_SIZE, "rt")
    room = WIDTH - 40 - text_width(change, TITLE_SIZE)
    paper.write_text((14, 12), fit_text(title, TITLE_SIZE, room), INK, TITLE_SIZE, "lt")
    return paper.encode()


def _draw_grid(canvas: Canvas, plot: Plot, unit: str) -> None:
    values = choose_ticks(plot.low, plot.high, unit, TICKS)
    ticks = [(value, plot.y(value)) for value in values]
    for _, height in ticks:
        canvas.draw_line([(PLOT_LEFT, height), (PLOT_RIGHT, height)], GRID, 1)
    write_ticks(canvas, ticks, unit, PLOT_LEFT, UNIT_AT)
    canvas.write_text((PLOT_LEFT, PLOT_BOTTOM + 8), "older commits", MUTED, LABEL_SIZE, "lt")
    canvas.write_text((PLOT_RIGHT, PLOT_BOTTOM + 8), "newer", MUTED, LABEL_SIZE, "rt")


def _draw_levels(
    canvas: Canvas, plot: Plot, step: tuple[int, int], levels: Level, repaired: int | None
) -> None:
    """Both levels, the new one up to its repair, and the rise between them where it happened."""
    (good, bad), (before, after) = step, levels
    edge = min(max(plot.x((good + bad) / 2), PLOT_LEFT), PLOT_RIGHT)
    canvas.draw_line([(edge, PLOT_TOP), (edge, PLOT_BOTTOM)], MUTED, 1)
    canvas.draw_line([(PLOT_LEFT, plot.y(before)), (edge, plot.y(before))], GOOD, LINE_WIDTH)
    end = PLOT_RIGHT if repaired is None else min(max(plot.x(repaired), edge), PLOT_RIGHT)
    canvas.draw_line([(edge, plot.y(after)), (end, plot.y(after))], BAD, LINE_WIDTH)


def _draw_point(canvas: Canvas, plot: Plot, point: PicturePoint, is_bad: bool) -> None:
    """Hollow where it is tainted; what lies outside then is drawn at the edge."""
    y = min(max(plot.y(point.value), PLOT_TOP), PLOT_BOTTOM)
    colour = DOUBTFUL if point.tainted else BAD if is_bad else GOOD
    canvas.draw_dot((plot.x(point.position), y), DOT_RADIUS, colour, hollow=point.tainted)
