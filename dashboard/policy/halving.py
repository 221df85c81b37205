"""In which order the commits between two measured ones are measured: each halves the largest gap left."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import pairwise


def halving_order(waiting: Iterable[int], measured: Iterable[int]) -> list[int]:
    """The waiting positions, that in the middle of the largest gap between measured ones first; of equal gaps
    the newest. Those that wait may be a few of what lies in a gap."""
    positions = sorted(set(waiting))
    if not positions:
        return []
    known = set(measured)
    # Measured already, in another case.
    order = [position for position in positions if position in known]
    gaps: list[tuple[int, int]] = []

    def add_gap(after: int, before: int) -> None:
        if bisect_right(positions, after) < bisect_left(positions, before):
            heapq.heappush(gaps, (after - before, -before))

    borders = sorted({positions[0] - 1, *known, positions[-1] + 1})
    for after, before in pairwise(borders):
        add_gap(after, before)
    while gaps:
        width, negative_end = heapq.heappop(gaps)
        before = -negative_end
        after = before + width
        chosen = _nearest_to_middle(positions, after, before)
        order.append(chosen)
        add_gap(after, chosen)
        add_gap(chosen, before)
    return order


def _nearest_to_middle(positions: list[int], after: int, before: int) -> int:
    """Of sorted positions within a gap that which is nearest to its middle; of two the newer."""
    first, end = bisect_right(positions, after), bisect_left(positions, before)
    index = bisect_left(positions, (after + before) / 2, first, end)
    near = positions[max(first, index - 1) : min(end, index + 1)]
    return min(near, key=lambda position: (abs(2 * position - after - before), -position))
