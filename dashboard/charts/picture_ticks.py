"""The words of a picture's vertical axis: numbers with their unit, or the unit once if that is wide."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.charts.canvas import MUTED, WIDER, At, Canvas, fit_text, text_width
from dashboard.sentences import numbers

LABEL_SIZE = 12
# Pixels between a label and the line that it names, and between a label and the picture's edge.
GAP, MARGIN = 8, 4


def write_ticks(canvas: Canvas, ticks: Sequence[At], unit: str, right: float, unit_at: At) -> None:
    """`ticks`: (value, height) of each line, which begins at `right`. `unit_at`: the left top of the unit,
    where it doesn't fit beside the numbers."""
    scaled = numbers.choose_scale(unit, max(abs(value) for value, _ in ticks))
    plain = [numbers.format_number(value / scaled.size) for value, _ in ticks]
    labels = [f"{number} {scaled.unit}".strip() for number in plain]
    room = right - GAP - MARGIN
    if max(text_width(label, LABEL_SIZE) * WIDER for label in labels) > room:
        canvas.write_text(unit_at, scaled.unit, MUTED, LABEL_SIZE, "lt")
        labels = [fit_text(number, LABEL_SIZE, room) for number in plain]
    for label, (_, height) in zip(labels, ticks, strict=True):
        canvas.write_text((right - GAP, height), label, MUTED, LABEL_SIZE, "rm")
