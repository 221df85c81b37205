"""The marks and dashes of a page's figure in a picture, by plotly's names of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, pairwise

from dashboard.charts.pictures.canvas import At, Canvas

# Seen as large as a disc of the same size.
REACH = 1.25
# What is drawn and what is left free in turns, in pixels.
DASHES: Mapping[str, tuple[float, ...]] = {
    "dot": (2, 3),
    "dash": (6, 4),
    "dashdot": (6, 3, 2, 3),
    "longdash": (10, 4),
}


def _regular_corners(count: int, turned: float = 0.0) -> tuple[At, ...]:
    """On a circle of radius 1 around 0, the first on top; `turned` in parts of a whole turn."""
    angles = [math.tau * (index / count + turned - 0.25) for index in range(count)]
    return tuple((math.cos(angle), math.sin(angle)) for angle in angles)


def _star_corners() -> tuple[At, ...]:
    return tuple(
        (x * reach, y * reach) for (x, y), reach in zip(_regular_corners(10), (1.2, 0.5) * 5, strict=True)
    )


CORNERS: Mapping[str, tuple[At, ...]] = {
    "diamond": _regular_corners(4),
    "square": _regular_corners(4, 0.125),
    "triangle-up": _regular_corners(3),
    "triangle-down": _regular_corners(3, 0.5),
    "pentagon": _regular_corners(5),
    "hexagon": _regular_corners(6),
    "star": _star_corners(),
}


def cut_dashes(points: Sequence[At], dash: str) -> Iterator[list[At]]:
    """The drawn parts of a line, each of two points at least; a solid one is a single part."""
    if dash not in DASHES:
        yield list(points)
        return
    lengths = cycle(DASHES[dash])
    left, drawn, part = next(lengths), True, [points[0]]
    for (x, y), (to_x, to_y) in pairwise(points):
        length, gone = math.hypot(to_x - x, to_y - y), 0.0
        while length - gone > left:
            gone += left
            cut = (x + (to_x - x) * gone / length, y + (to_y - y) * gone / length)
            if drawn:
                yield [*part, cut]
            left, drawn, part = next(lengths), not drawn, [cut]
        left -= length - gone
        part.append((to_x, to_y))
    if drawn and len(part) > 1:
        yield part


def draw_mark(canvas: Canvas, at: At, size: float, colour: str, symbol: str) -> None:
    """`size` in pixels; what has no corners of its own is a disc. Hollow ones end in `-open`."""
    shape, hollow = symbol.removesuffix("-open"), symbol.endswith("-open")
    x, y = at
    if shape == "x-thin":
        reach = size / 2
        canvas.draw_line([(x - reach, y - reach), (x + reach, y + reach)], colour, 2)
        canvas.draw_line([(x - reach, y + reach), (x + reach, y - reach)], colour, 2)
    elif shape in CORNERS:
        reach = REACH * size / 2
        corners = [(x + reach * across, y + reach * down) for across, down in CORNERS[shape]]
        if hollow:
            canvas.draw_line([*corners, corners[0]], colour, 1)
        else:
            canvas.draw_area(corners, colour)
    else:
        canvas.draw_dot(at, size / 2, colour, hollow=hollow)
