"""The forest plot of a comparison as a picture: what differs, by how much, and an interval for each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.charts.forest import ForestAxis, ForestRow
from dashboard.charts.pictures.canvas import GRID, INK, MUTED, Canvas, fit_text

WIDTH = 900
# Where the columns begin: names, sizes (which end there), the side they lie on, and the plot.
LEFT, SIZES, SIDES, PLOT, RIGHT = 16, 500, 512, 566, 884
NAME_ROOM, SIZE_ROOM = 270, 210
TOP, ROW, BELOW = 88, 22, 14
TITLE_SIZE, LABEL_SIZE = 15, 11
RADIUS, ARROW = 4, 6
# Of the pages in the light.
SIDE_COLOURS = {"worse": "#c0392b", "better": "#0a6a70"}
NO_RATIO = "a difference, no ratio"


@dataclass(frozen=True, slots=True)
class ForestLine:
    """One metric; `size` with its interval, `side` better or worse. Without a ratio it has no `place`."""

    name: str
    size: str
    side: str
    place: ForestRow | None


def picture_height(lines: Sequence[ForestLine]) -> int:
    return TOP + ROW * len(lines) + BELOW


def draw_forest_picture(
    canvas: Canvas, axis: ForestAxis | None, lines: Sequence[ForestLine], title: str, caption: str
) -> bytes:
    """On a canvas of WIDTH and `picture_height`; without lines the caption says why."""
    canvas.write_text((LEFT, 14), fit_text(title, TITLE_SIZE, RIGHT - LEFT), INK, TITLE_SIZE, "lt")
    canvas.write_text((LEFT, 38), fit_text(caption, LABEL_SIZE, RIGHT - LEFT), MUTED, LABEL_SIZE, "lt")
    for tick in axis.ticks() if axis else ():
        canvas.write_text((_place_across(tick.x), TOP - 6), tick.label, MUTED, LABEL_SIZE, "mb")
    for index, line in enumerate(lines):
        y = TOP + ROW * (index + 0.5)
        canvas.write_text((LEFT, y), fit_text(line.name, LABEL_SIZE, NAME_ROOM), INK, LABEL_SIZE, "lm")
        canvas.write_text((SIZES, y), fit_text(line.size, LABEL_SIZE, SIZE_ROOM), INK, LABEL_SIZE, "rm")
        canvas.write_text((SIDES, y), line.side, SIDE_COLOURS[line.side], LABEL_SIZE, "lm")
        if line.place and axis:
            _draw_ticks(canvas, axis, y)
            _draw_interval(canvas, line.place, y, SIDE_COLOURS[line.side], axis.position(1.0))
        elif axis:
            canvas.write_text((PLOT, y), NO_RATIO, MUTED, LABEL_SIZE, "lm")
    return canvas.encode()


def _draw_ticks(canvas: Canvas, axis: ForestAxis, y: float) -> None:
    """Of one row, the line of no difference the darkest: they leave out the rows that have words there."""
    for tick in axis.ticks():
        colour = MUTED if tick.x == axis.position(1.0) else GRID
        canvas.draw_line(
            [(_place_across(tick.x), y - ROW / 2), (_place_across(tick.x), y + ROW / 2)], colour, 1
        )


def _draw_interval(canvas: Canvas, place: ForestRow, y: float, colour: str, none: float) -> None:
    """An arrow at the edge for what lies beyond it."""
    canvas.draw_line([(_place_across(place.start), y), (_place_across(place.end), y)], colour, 2)
    x = _place_across(place.x)
    if place.is_beyond:
        tip = ARROW if place.x > none else -ARROW
        canvas.draw_area([(x - tip, y - ARROW), (x + tip, y), (x - tip, y + ARROW)], colour)
    else:
        canvas.draw_dot((x, y), RADIUS, colour)


def _place_across(percent: float) -> float:
    return PLOT + percent / 100 * (RIGHT - PLOT)
