"""The phases of a run's step as a picture: a flame chart, with the outermost phases on top."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.charts.phases import Phase, layout_blocks
from dashboard.charts.pictures.canvas import INK, MUTED, Canvas, fit_text, text_width
from dashboard.sentences.formatting import numbers

WIDTH, HEIGHT = 600, 240
LEFT, TOP, RIGHT = 16, 48, 584
TALLEST_ROW, GAP = 60, 2
BELOW = 16
DEEPEST = 4
TITLE_SIZE, LABEL_SIZE = 15, 12
# Those of the pages in the light, on which INK can be read.
HUES = ("#8fb4ea", "#f0b274", "#93cf9f", "#e79a9a", "#c3aee6", "#d8b796", "#e9b0d3", "#b9c0c8")
UNATTRIBUTED = "#dfe3e8"
LEAST_WIDTH = 1.5


def draw_phases_picture(canvas: Canvas, phases: Sequence[Phase], whole: float, title: str) -> bytes:
    """`whole`: the seconds of a step, on a canvas of WIDTH and HEIGHT."""
    size = numbers.format_quantity(whole, "s") if whole else ""
    room = WIDTH - 48 - text_width(size, TITLE_SIZE)
    canvas.write_text((LEFT, 14), fit_text(title, TITLE_SIZE, room), INK, TITLE_SIZE, "lt")
    canvas.write_text((RIGHT, 14), size, INK, TITLE_SIZE, "rt")
    blocks = [block for block in layout_blocks(phases) if block.depth <= DEEPEST]
    end = max([whole, *(block.start + block.width for block in blocks)], default=0.0)
    if not blocks or end <= 0:
        canvas.write_text((WIDTH / 2, HEIGHT / 2), "no phases were measured", MUTED, TITLE_SIZE, "mm")
        return canvas.encode()
    rows = 1 + max(block.depth for block in blocks)
    row_height = min(TALLEST_ROW, (HEIGHT - TOP - BELOW) / rows)
    for block in blocks:
        left = LEFT + block.start / end * (RIGHT - LEFT)
        width = block.width / end * (RIGHT - LEFT) - GAP
        if width < LEAST_WIDTH:
            continue
        top = TOP + block.depth * row_height
        bottom = top + row_height - GAP
        colour = UNATTRIBUTED if block.hue < 0 else HUES[block.hue % len(HUES)]
        corners = [(left, top), (left + width, top), (left + width, bottom), (left, bottom)]
        canvas.draw_area(corners, colour)
        label = fit_text(block.name.strip("/"), LABEL_SIZE, width - 10)
        if len(label) > 1:
            canvas.write_text((left + 5, (top + bottom) / 2), label, INK, LABEL_SIZE, "lm")
    return canvas.encode()
