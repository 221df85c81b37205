"""A small picture of a step, as a PNG: for mails and chats, which run no script.

Drawn at twice its size and made smaller, which smooths its edges.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFont

from dashboard.sentences import numbers

WIDTH, HEIGHT = 600, 240
SCALE = 2
PLOT_LEFT, PLOT_TOP, PLOT_RIGHT, PLOT_BOTTOM = 78, 42, 586, 212
BACKGROUND, INK, MUTED, GRID = "#ffffff", "#1b1f24", "#57606a", "#e5e8ec"
GOOD, BAD, DOUBTFUL = "#2563c4", "#c0392b", "#b6bcc4"
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
) -> bytes:
    """`step` holds the positions of the last good and the first bad commit; `points` are two or more."""
    plot = plot_of(points, levels)
    image = Image.new("RGB", (WIDTH * SCALE, HEIGHT * SCALE), BACKGROUND)
    canvas = ImageDraw.Draw(image)
    _draw_grid(canvas, plot, unit)
    _draw_levels(canvas, plot, step, levels)
    for point in points:
        _draw_point(canvas, plot, point, point.position >= step[1])
    _draw_title(canvas, title, change)
    return _encode_png(image)


def _draw_grid(canvas: ImageDraw.ImageDraw, plot: Plot, unit: str) -> None:
    scaled = numbers.choose_scale(unit, max(abs(plot.low), abs(plot.high)))
    for tick in range(TICKS):
        value = plot.low + (tick + 0.5) / TICKS * (plot.high - plot.low)
        height = plot.y(value)
        _draw_line(canvas, (PLOT_LEFT, height), (PLOT_RIGHT, height), GRID, 1)
        label = f"{numbers.format_number(value / scaled.size)} {scaled.unit}".strip()
        _write_text(canvas, (PLOT_LEFT - 8, height), label, MUTED, LABEL_SIZE, "rm")
    _write_text(canvas, (PLOT_LEFT, PLOT_BOTTOM + 8), "older commits", MUTED, LABEL_SIZE, "lt")
    _write_text(canvas, (PLOT_RIGHT, PLOT_BOTTOM + 8), "newer", MUTED, LABEL_SIZE, "rt")


def _draw_levels(canvas: ImageDraw.ImageDraw, plot: Plot, step: tuple[int, int], levels: Level) -> None:
    """Both levels, and the rise between them where it happened."""
    (good, bad), (before, after) = step, levels
    edge = min(max(plot.x((good + bad) / 2), PLOT_LEFT), PLOT_RIGHT)
    _draw_line(canvas, (edge, PLOT_TOP), (edge, PLOT_BOTTOM), MUTED, 1)
    _draw_line(canvas, (PLOT_LEFT, plot.y(before)), (edge, plot.y(before)), GOOD, LINE_WIDTH)
    _draw_line(canvas, (edge, plot.y(after)), (PLOT_RIGHT, plot.y(after)), BAD, LINE_WIDTH)


def _draw_point(canvas: ImageDraw.ImageDraw, plot: Plot, point: PicturePoint, is_bad: bool) -> None:
    """Hollow where it is tainted; what lies outside then is drawn at the edge."""
    x = plot.x(point.position) * SCALE
    y = min(max(plot.y(point.value), PLOT_TOP), PLOT_BOTTOM) * SCALE
    radius = DOT_RADIUS * SCALE
    box = (x - radius, y - radius, x + radius, y + radius)
    if point.tainted:
        canvas.ellipse(box, outline=DOUBTFUL, width=SCALE)
    else:
        canvas.ellipse(box, fill=BAD if is_bad else GOOD)


def _draw_title(canvas: ImageDraw.ImageDraw, title: str, change: str) -> None:
    _write_text(canvas, (WIDTH - 14, 12), change, BAD, TITLE_SIZE, "rt")
    room = WIDTH - 40 - _text_width(change, TITLE_SIZE)
    while title and _text_width(title, TITLE_SIZE) > room:
        title = title.rstrip("…")[:-1] + "…" if len(title) > 1 else ""
    _write_text(canvas, (14, 12), title, INK, TITLE_SIZE, "lt")


def _text_width(text: str, size: int) -> float:
    return float(ImageFont.load_default(size).getlength(text))


def _write_text(
    canvas: ImageDraw.ImageDraw, at: tuple[float, float], text: str, colour: str, size: int, anchor: str
) -> None:
    font = ImageFont.load_default(size * SCALE)
    canvas.text((at[0] * SCALE, at[1] * SCALE), text, fill=colour, font=font, anchor=anchor)


def _draw_line(
    canvas: ImageDraw.ImageDraw, start: tuple[float, float], end: tuple[float, float], colour: str, width: int
) -> None:
    points = [(x * SCALE, y * SCALE) for x, y in (start, end)]
    canvas.line(points, fill=colour, width=width * SCALE)


def _encode_png(image: Image.Image) -> bytes:
    smaller = image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
    # Few colours: a palette makes it a fifth as large.
    file = io.BytesIO()
    smaller.quantize(64).save(file, "PNG", optimize=True)
    return file.getvalue()
