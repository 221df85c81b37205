"""A trend in the size of a word: an SVG path, so a page of fifty needs no script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

WIDTH, HEIGHT, MARGIN = 112, 28, 3
# Noise must not look like an event: the height of the drawing stands for at least this share of the value.
LEAST_RANGE = 0.06


@dataclass(frozen=True, slots=True)
class Sparkline:
    """`points` for a polyline, where the newest value is, and the height of the level line if any."""

    points: str
    x: str
    y: str
    level: str | None


def layout_sparkline(values: Sequence[float], level: float | None = None) -> Sparkline | None:
    """None where there is nothing to draw; a single value is a dot in the middle of its height."""
    if not values:
        return None
    low, high = min(values), max(values)
    least = LEAST_RANGE * max(abs(low), abs(high)) or 1.0
    if high - low < least:
        middle = (high + low) / 2
        low, high = middle - least / 2, middle + least / 2

    scale = 10 * (HEIGHT - 2 * MARGIN) / (high - low)
    bottom = 10 * (HEIGHT - MARGIN) + scale * low
    heights = [TENTHS[round(bottom - scale * value)] for value in values]
    xs = _spread_evenly(len(values))
    line = " ".join([f"{x},{height}" for x, height in zip(xs, heights, strict=True)])
    inside = level is not None and low <= level <= high
    height = TENTHS[round(bottom - scale * level)] if inside and level is not None else None
    return Sparkline(line, xs[-1], heights[-1], height)


# `7.3` of 73: a page has thousands of them.
TENTHS = [f"{number / 10:g}" for number in range(10 * WIDTH + 1)]


@lru_cache
def _spread_evenly(count: int) -> list[str]:
    """Where so many values stand, from the left to the right; a single one is the newest."""
    spacing = (WIDTH - 2 * MARGIN) / max(count - 1, 1)
    first = 0 if count > 1 else 1
    return [TENTHS[round(10 * (MARGIN + (first + index) * spacing))] for index in range(count)]


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
