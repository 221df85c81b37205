"""How long waits last: a histogram that one process writes and another one reads, and adds to others."""

from __future__ import annotations

from math import log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS_PER_DECADE = 20
SHORTEST = 1e-6
BINS = 8 * BINS_PER_DECADE
"""From SHORTEST seconds to a hundred; what lies beyond either end is in the last bin there."""


class WaitTimes:
    """A histogram with bins that each are 12 % wider than the one before, in memory that may be shared."""

    def __init__(self, memory: Any) -> None:
        self.counts: NDArray[np.int64] = np.frombuffer(memory, dtype=np.int64)

    def add(self, seconds: float) -> None:
        """Count one wait."""
        place = int(log10(max(seconds, SHORTEST) / SHORTEST) * BINS_PER_DECADE)
        self.counts[min(place, BINS - 1)] += 1


def find_percentile(counts: NDArray[np.int64], share: float) -> float:
    """The seconds that this share of the waits don't exceed, up to a bin's width; 0 where there are none."""
    total = int(counts.sum())
    if not total:
        return 0.0
    place = int(np.searchsorted(np.cumsum(counts), share * total))
    return float(SHORTEST * 10 ** ((place + 1) / BINS_PER_DECADE))
