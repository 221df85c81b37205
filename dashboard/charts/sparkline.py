"""A trend in the size of a word: an SVG path, so a page of fifty needs no script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

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


def layout_sparkline(values: Sequence[float], level: float | None = None) -> Sparkline | None:
    """None where there is nothing to draw; a single value is a dot in the middle of its height."""
    if not values:
        return None
    low, high = min(values), max(values)
    least = LEAST_RANGE * max(abs(low), abs(high)) or 1.0
    if high - low < least:
        middle = (high + low) / 2
        low, high = middle - least / 2, middle + least / 2

    scale = (HEIGHT - 2 * MARGIN) / (high - low)

    def y(value: float) -> float:
        return round(HEIGHT - MARGIN - (value - low) * scale, 1)

    spacing = (WIDTH - 2 * MARGIN) / max(len(values) - 1, 1)
    xs = [round(MARGIN + index * spacing, 1) for index in range(len(values))]
    if len(values) == 1:
        xs = [WIDTH - MARGIN]
    line = " ".join(f"{x:g},{y(value):g}" for x, value in zip(xs, values, strict=True))
    inside = level is not None and low <= level <= high
    return Sparkline(line, xs[-1], y(values[-1]), y(level) if inside and level is not None else None)


def draw_sparkline(drawn: Sparkline | None, description: str) -> SafeString:
    """The markup. No template: a page has hundreds, and each would take longer than its layout."""
    if drawn is None:
        return SafeString("")
    text, level = escape(description), drawn.level
    line = f'<line class="level" x1="0" x2="{WIDTH}" y1="{level}" y2="{level}"/>' if level is not None else ""
    return mark_safe(  # noqa: S308 - numbers, and an escaped text
        f'<svg class="spark" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="{text}"><title>{text}</title>{line}<polyline points="{drawn.points}"/>'
        f'<circle cx="{drawn.x}" cy="{drawn.y}" r="2.2"/></svg>'
    )
