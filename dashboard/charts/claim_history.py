"""What a claim is worth over commits, beside what is claimed: drawn on the server, as nothing in it moves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.charts.axes import round_ticks
from dashboard.sentences.formatting.numbers import format_number

WIDTH, HEIGHT = 720, 240
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 12, 30
# What a sign of a label takes on a phone, where labels are drawn largest, and the room beside them.
SIGN_WIDTH, GAP = 11.5, 10
MOST_LABELS = 6
TICKS = 5
# The drawing reaches beyond what it shows by this part.
ROOM = 0.08
# What lies so many times farther out than the values themselves isn't worth squeezing these for.
FAR = 3.0


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """One measurement: its figures, its verdict's tone, the commit, and where the page tells more."""

    value: float
    low: float
    high: float
    tone: str
    label: str
    text: str
    address: str


@dataclass(frozen=True, slots=True)
class DrawnPoint:
    point: HistoryPoint
    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class ClaimHistory:
    """All places in the drawing's own units. `band`: where it begins above, of what agrees with the claim."""

    points: tuple[DrawnPoint, ...]
    line: str
    band: float | None
    band_height: float
    no_difference: float | None
    rows: tuple[Tick, ...]
    columns: tuple[Tick, ...]
    width: int = WIDTH
    height: int = HEIGHT
    inner: int = WIDTH - LEFT - RIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    bottom: int = HEIGHT - BOTTOM


def layout_history(
    points: Sequence[HistoryPoint], accepted: tuple[float, float] | None, *, is_ratio: bool
) -> ClaimHistory | None:
    """None where there is nothing to draw. `accepted` may be infinite at either end."""
    if not points:
        return None
    low, high = _value_range(points, accepted, is_ratio)
    texts = [(value, format_number(value)) for value in round_ticks(low, high, TICKS)]
    left = max(LEFT, *(math.ceil(GAP + SIGN_WIDTH * len(text)) for _, text in texts))
    inner = WIDTH - left - RIGHT

    def x(index: int) -> float:
        return round(left + inner * (index + 0.5) / len(points), 1)

    def y(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    drawn = tuple(
        DrawnPoint(point, x(index), y(point.value), y(point.low), y(point.high))
        for index, point in enumerate(points)
    )
    top, height = None, 0.0
    if accepted and accepted[0] <= high and accepted[1] >= low:
        top = y(accepted[1])
        height = round(y(accepted[0]) - top, 1)
    every = math.ceil(len(points) / MOST_LABELS)
    columns = tuple(Tick(row.x, row.point.label) for index, row in enumerate(drawn) if index % every == 0)
    return ClaimHistory(
        points=drawn,
        line=" ".join(f"{row.x:g},{row.y:g}" for row in drawn),
        band=top,
        band_height=height,
        no_difference=y(1.0) if is_ratio and low <= 1 <= high else None,
        rows=tuple(Tick(y(value), text) for value, text in texts),
        columns=columns,
        inner=inner,
        left=left,
    )


def _value_range(
    points: Sequence[HistoryPoint], accepted: tuple[float, float] | None, is_ratio: bool
) -> tuple[float, float]:
    """What the drawing reaches over: all intervals, what is claimed where it isn't far off, and 1."""
    low, high = min(point.low for point in points), max(point.high for point in points)
    size = max(high - low, 0.05 * max(abs(low), abs(high)), 1e-9)
    wanted = [edge for edge in accepted or () if math.isfinite(edge)] + ([1.0] if is_ratio else [])
    for edge in wanted:
        if low - FAR * size <= edge <= high + FAR * size:
            low, high = min(low, edge), max(high, edge)
    room = ROOM * max(high - low, size)
    return low - room, high + room
