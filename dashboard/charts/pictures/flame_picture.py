"""Stacks of functions as a picture: callers on top, each frame as wide as what it cost with all it called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dashboard.charts.difference_icicle import DifferenceIcicle
from dashboard.charts.icicle import ROW_HEIGHT, Icicle
from dashboard.charts.pictures.canvas import INK, MUTED, Canvas, fit_text
from dashboard.charts.pictures.phases_picture import HUES, UNATTRIBUTED

WIDTH = 900
LEFT, TOP, RIGHT = 16, 64, 884
BELOW = 12
MOST_ROWS = 24
TITLE_SIZE, LABEL_SIZE = 15, 11
GAP = 1.0
LEAST_WIDTH = 0.6
# Those of the pages in the light, on which INK can be read.
MOVED_COLOURS = {
    "same": "#e5e8ec",
    "more": "#f4c7c1",
    "much-more": "#ea9a90",
    "less": "#c6d9f6",
    "much-less": "#94b8ec",
}


@dataclass(frozen=True, slots=True)
class FlameBlock:
    """A frame: `x` and `width` in per cent of the whole, `row` from the outermost, 0."""

    x: float
    width: float
    row: int
    label: str
    colour: str


def blocks_of_profile(icicle: Icicle) -> list[FlameBlock]:
    return [
        FlameBlock(
            block.x,
            block.width,
            block.y // ROW_HEIGHT,
            block.label or "all functions",
            _fill_colour(block.frame.hue),
        )
        for block in icicle.blocks
    ]


def _fill_colour(hue: int | None) -> str:
    return UNATTRIBUTED if hue is None or hue < 0 else HUES[hue % len(HUES)]


def blocks_of_difference(icicle: DifferenceIcicle) -> list[FlameBlock]:
    """`what` of a frame that one side lacks stands before its name: colour alone doesn't tell it."""
    return [
        FlameBlock(
            found.block.x,
            found.block.width,
            found.block.y // ROW_HEIGHT,
            f"{found.what} {found.block.label or 'all functions'}".strip(),
            MOVED_COLOURS[found.colour],
        )
        for found in icicle.blocks
    ]


def picture_height(blocks: Sequence[FlameBlock]) -> int:
    rows = 1 + max((block.row for block in blocks), default=2)
    return TOP + min(rows, MOST_ROWS) * ROW_HEIGHT + BELOW


def draw_flame_picture(canvas: Canvas, blocks: Iterable[FlameBlock], title: str, caption: str) -> bytes:
    """On a canvas of WIDTH and `picture_height`; without blocks the caption says why."""
    canvas.write_text((LEFT, 14), fit_text(title, TITLE_SIZE, RIGHT - LEFT), INK, TITLE_SIZE, "lt")
    canvas.write_text((LEFT, 38), fit_text(caption, LABEL_SIZE, RIGHT - LEFT), MUTED, LABEL_SIZE, "lt")
    for block in blocks:
        width = block.width / 100 * (RIGHT - LEFT) - GAP
        if width < LEAST_WIDTH or block.row >= MOST_ROWS:
            continue
        left, top = LEFT + block.x / 100 * (RIGHT - LEFT), TOP + block.row * ROW_HEIGHT
        right, bottom = left + width, top + ROW_HEIGHT - GAP
        canvas.draw_area([(left, top), (right, top), (right, bottom), (left, bottom)], block.colour)
        label = fit_text(block.label, LABEL_SIZE, width - 8)
        if len(label) > 1:
            canvas.write_text((left + 4, (top + bottom) / 2), label, INK, LABEL_SIZE, "lm")
    return canvas.encode()
