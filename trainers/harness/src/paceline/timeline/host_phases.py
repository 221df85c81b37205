"""Which phase the host stood in at a moment: the innermost range of the thread, else of the steps' thread."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ..measured.collective_log import KINDS
from ..phase_names import DATA_LOADING
from .intervals import Interval
from .trace_events import HostRange


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of one thread in which the same range is the innermost one."""

    start: float
    end: float
    name: str


def innermost_segments(ranges: Sequence[HostRange]) -> list[Segment]:
    """Return the disjoint stretches of one thread's nested ranges, which are ordered by their start."""
    segments: list[Segment] = []
    stack: list[HostRange] = []
    moment = 0.0

    def close_until(now: float) -> None:
        nonlocal moment
        while stack and stack[-1].end <= now:
            inner = stack.pop()
            if inner.end > moment:
                segments.append(Segment(moment, inner.end, inner.name))
                moment = inner.end

    for opened in ranges:
        close_until(opened.start)
        if stack and opened.start > moment:
            segments.append(Segment(moment, opened.start, stack[-1].name))
        moment = max(moment, opened.start)
        stack.append(opened)
    close_until(float("inf"))
    return segments


class PhaseClock:
    """The phases of all threads by time. `main` is the thread that takes the steps."""

    def __init__(self, phases: Sequence[HostRange], main: int) -> None:
        by_thread: defaultdict[int, list[HostRange]] = defaultdict(list)
        for opened in phases:
            by_thread[opened.thread].append(opened)
        self._segments = {thread: innermost_segments(ranges) for thread, ranges in by_thread.items()}
        self._starts = {
            thread: [segment.start for segment in segments] for thread, segments in self._segments.items()
        }
        self._main = main

    def find_phase(self, moment: float, thread: int) -> str:
        """Return the phase of that thread; of one without phases, such as autograd's, the main thread's."""
        return self._find_in_thread(moment, thread) or self._find_in_thread(moment, self._main)

    def _find_in_thread(self, moment: float, thread: int) -> str:
        place = bisect_right(self._starts.get(thread, ()), moment) - 1
        if place < 0:
            return ""
        segment = self._segments[thread][place]
        return segment.name if moment < segment.end else ""

    def split_by_phase(self, interval: Interval) -> list[tuple[str, float]]:
        """Return the interval's seconds by the main thread's phase; empty for those in none."""
        start, end = interval
        segments = self._segments.get(self._main, [])
        place = max(0, bisect_right(self._starts.get(self._main, ()), start) - 1)
        parts: defaultdict[str, float] = defaultdict(float)
        inside = 0.0
        for segment in segments[place:]:
            if segment.start >= end:
                break
            seconds = min(segment.end, end) - max(segment.start, start)
            if seconds > 0:
                parts[segment.name] += seconds
                inside += seconds
        if end - start - inside > 0:
            parts[""] += end - start - inside
        return list(parts.items())

    def loading_intervals(self) -> list[Interval]:
        """Return when the main thread was in a phase of loading data."""
        return [
            (segment.start, segment.end)
            for segment in self._segments.get(self._main, [])
            if DATA_LOADING in segment.name.split("/")
        ]

    def collective_intervals(self) -> list[Interval]:
        """Return when the main thread was in a collective of its ranks, or in a message to one of them."""
        return [
            (segment.start, segment.end)
            for segment in self._segments.get(self._main, [])
            if segment.name.rpartition("/")[2] in KINDS
        ]
