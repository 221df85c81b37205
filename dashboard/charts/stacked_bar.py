"""Where the parts of a bar lie that stand one behind the other: attributes of a drawing."""

from __future__ import annotations

from collections.abc import Sequence


def stack_widths(sizes: Sequence[float], whole: float) -> list[tuple[float, float]]:
    """(start, width) of each part in per cent of a bar that is as long as `whole`; 0 where that is 0."""
    spans, start = [], 0.0
    for size in sizes:
        width = 100 * size / whole if whole > 0 else 0.0
        spans.append((round(start, 2), round(width, 2)))
        start += width
    return spans
