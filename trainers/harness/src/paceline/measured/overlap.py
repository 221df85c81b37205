"""Which share of the time of collectives went on beside computing."""

from __future__ import annotations

from collections import defaultdict


class OverlappedTime:
    """Sums up how long collectives were under way, and how long of it this process computed.

    A collective that had ended before anybody waited for it ended at an unknown moment: it is taken to have
    been as fast, by its bytes, as those of its kind whose end was seen.
    """

    def __init__(self) -> None:
        self._under_way = self._hidden = 0.0
        self._has_hidden = False
        self._seen: defaultdict[int, tuple[float, int]] = defaultdict(lambda: (0.0, 0))
        self._ended_before: list[tuple[int, float, int]] = []

    def add_overlapped(self, under_way: float, hidden: float) -> None:
        """Add what was under way so long, `hidden` of it beside computing."""
        self._has_hidden = True
        self._under_way += under_way
        self._hidden += hidden

    def add_waited(self, kind: int, size: int, under_way: float, hidden: float) -> None:
        """Add one whose end was seen, since this process waited for it."""
        self.add_overlapped(under_way, hidden)
        seconds, before = self._seen[kind]
        self._seen[kind] = seconds + under_way, before + size

    def add_ended_before(self, kind: int, size: int, at_most: float) -> None:
        """Add one that had ended when this process asked for it, `at_most` seconds after its launch."""
        self._has_hidden = True
        self._ended_before.append((kind, at_most, size))

    def share(self, unhidden: float) -> float | None:
        """Return the share, or None where every collective was waited for at once.

        `unhidden` are the seconds of those that this process waited for from begin to end.
        """
        estimated = sum(self._estimate_seconds(*ended) for ended in self._ended_before)
        under_way = unhidden + self._under_way + estimated
        return min(1.0, (self._hidden + estimated) / under_way) if self._has_hidden and under_way else None

    def _estimate_seconds(self, kind: int, at_most: float, size: int) -> float:
        seconds, seen = self._seen[kind]
        return min(at_most, seconds * size / seen) if seen else at_most
