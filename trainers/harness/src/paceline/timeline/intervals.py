"""Stretches of time: their union, what lies in two of them, what lies in one alone. All in order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

Interval = tuple[float, float]


def unite_intervals(intervals: Iterable[Interval], window: Interval) -> list[Interval]:
    """Return the union of what lies within the window, as disjoint intervals in order."""
    first, last = window
    united: list[Interval] = []
    for start, end in sorted(intervals):
        low, high = max(start, first), min(end, last)
        if low >= high:
            continue
        if united and low <= united[-1][1]:
            united[-1] = united[-1][0], max(united[-1][1], high)
        else:
            united.append((low, high))
    return united


def subtract_intervals(whole: Sequence[Interval], taken: Sequence[Interval]) -> list[Interval]:
    """Return what of `whole` isn't in `taken`; both are disjoint and in order."""
    left: list[Interval] = []
    place = 0
    for start, end in whole:
        while place < len(taken) and taken[place][1] <= start:
            place += 1
        low = start
        for begins, ends in _from_place(taken, place, end):
            if begins > low:
                left.append((low, begins))
            low = max(low, ends)
        if low < end:
            left.append((low, end))
    return left


def intersect_interval(interval: Interval, others: Sequence[Interval]) -> list[Interval]:
    """Return the parts of `others`, disjoint and in order, that lie within the interval."""
    start, end = interval
    place = max(0, bisect_right(others, (start, float("inf"))) - 1)
    parts = ((max(low, start), min(high, end)) for low, high in _from_place(others, place, end))
    return [(low, high) for low, high in parts if low < high]


def total_length(intervals: Iterable[Interval]) -> float:
    """Return the sum of the lengths."""
    return sum(end - start for start, end in intervals)


def _from_place(intervals: Sequence[Interval], place: int, end: float) -> Iterable[Interval]:
    for index in range(place, len(intervals)):
        if intervals[index][0] >= end:
            return
        yield intervals[index]
