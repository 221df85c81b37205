"""The vertical axis of a picture: round values with their unit, or with the unit once where that is wide."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.charts.axes import round_ticks
from dashboard.charts.pictures.canvas import MUTED, WIDER, At, Canvas, fit_text, text_width
from dashboard.sentences.formatting import numbers

LABEL_SIZE = 12
# Pixels between a label and the line that it names, and between a label and the picture's edge.
GAP, MARGIN = 8, 4
MOST_DIGITS = 6


def choose_ticks(low: float, high: float, unit: str, most: int) -> list[float]:
    """Values that are round in the unit that they are told in."""
    size = numbers.choose_scale(unit, max(abs(low), abs(high))).size
    return [tick * size for tick in round_ticks(low / size, high / size, most)]


def write_ticks(canvas: Canvas, ticks: Sequence[At], unit: str, right: float, unit_at: At) -> None:
    """`ticks`: (value, height) of each line, which begins at `right`. `unit_at`: the left top of the unit,
    where it doesn't fit beside the numbers."""
    scaled = numbers.choose_scale(unit, max(abs(value) for value, _ in ticks))
    plain = _distinct_texts([value / scaled.size for value, _ in ticks])
    labels = [f"{number} {scaled.unit}".strip() for number in plain]
    room = right - GAP - MARGIN
    if max(text_width(label, LABEL_SIZE) * WIDER for label in labels) > room:
        canvas.write_text(unit_at, scaled.unit, MUTED, LABEL_SIZE, "lt")
        labels = [fit_text(number, LABEL_SIZE, room) for number in plain]
    for label, (_, height) in zip(labels, ticks, strict=True):
        canvas.write_text((right - GAP, height), label, MUTED, LABEL_SIZE, "rm")


def _distinct_texts(values: Sequence[float]) -> list[str]:
    """With as many digits as it takes for no two of them to read the same."""
    texts = [numbers.format_number(value) for value in values]
    for digits in range(4, MOST_DIGITS + 1):
        if len(set(texts)) == len(texts):
            break
        texts = [numbers.format_number(value, digits) for value in values]
    return texts
