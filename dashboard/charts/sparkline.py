"""A trend in the size of a word: an SVG path, so a page of fifty needs no script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT, MARGIN = 112, 28, 3
# Noise must not look like an event: the height of the drawing stands for at least this share of the value.
LEAST_RANGE = 0.06


@dataclass(frozen=True, slots=True)
class Sparkline:
    """`points` for a polyline, where the newest value is, and the height of the level line if any."""

    points: str
    x: float
    y: float
    level: float | None
    width: int = WIDTH
    height: int = HEIGHT


def layout_sparkline(values: Sequence[float], level: float | None = None) -> Sparkline | None:
    """None where there is nothing to draw; a single value is a dot in the middle of its height."""
    if not values:
        return None
    low, high = min(values), max(values)
    least = LEAST_RANGE * max(abs(low), abs(high)) or 1.0
    if high - low < least:
        middle = (high + low) / 2
        low, high = middle - least / 2, middle + least / 2

    def y(value: float) -> float:
        share = (value - low) / (high - low)
        return round(HEIGHT - MARGIN - share * (HEIGHT - 2 * MARGIN), 1)

    spacing = (WIDTH - 2 * MARGIN) / max(len(values) - 1, 1)
    xs = [round(MARGIN + index * spacing, 1) for index in range(len(values))]
    if len(values) == 1:
        xs = [WIDTH - MARGIN]
    line = " ".join(f"{x:g},{y(value):g}" for x, value in zip(xs, values, strict=True))
    inside = level is not None and low <= level <= high
    return Sparkline(line, xs[-1], y(values[-1]), y(level) if inside and level is not None else None)
