"""The samples of all points of a series in one array: a call for each point would take most of the time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from dashboard.detection.scaling import Scale
from dashboard.detection.segmentation import Floats
from dashboard.detection.types import Better

# This part of the points has fewer samples than is usual, or one of them: a repetition may fail.
FEW = 0.2


@dataclass(frozen=True, slots=True)
class Repetitions:
    """The samples of n points one behind the other in `values`; `counts` (n,) says how many each has."""

    values: Floats
    counts: npt.NDArray[np.intp]

    @classmethod
    def of(cls, samples: Sequence[Sequence[float]]) -> Repetitions:
        """Of the samples of each point, which may have none."""
        counts = np.fromiter(map(len, samples), np.intp, len(samples))
        return cls(np.fromiter(chain.from_iterable(samples), np.float64, int(counts.sum())), counts)

    @property
    def starts(self) -> npt.NDArray[np.intp]:
        """Where the samples of each point (n,) begin."""
        return np.cumsum(self.counts) - self.counts

    def of_points(self, chosen: npt.NDArray[np.bool_]) -> Repetitions:
        """Those of the chosen points alone; `chosen` (n,)."""
        return Repetitions(self.values[np.repeat(chosen, self.counts)], self.counts[chosen])

    def on_scale(self, scale: Scale) -> Repetitions:
        return Repetitions(scale.apply(self.values), self.counts)

    def best(self, better: Better, otherwise: Floats) -> Floats:
        """The best of each point's samples (n,); of a point without any what `otherwise` (n,) has.

        The best of five is better than the best of three. So where points have more samples than the usual
        fewest, it is the best of so few of them that counts, averaged over all such choices. Where the usual
        fewest is one there is no best: then all have what `otherwise` has.
        """
        found, measured = otherwise.copy(), np.flatnonzero(self.counts)
        if not len(measured):
            return found
        extreme = np.minimum if better == "lower" else np.maximum
        found[measured] = extreme.reduceat(self.values, self.starts[measured])
        fewest = usual_fewest(self.counts[measured])
        if fewest == 1:
            # The mean of single ones would be what any disturbed repetition makes of it.
            return otherwise.copy()
        for points, rows in self.alike():
            if rows.shape[1] > fewest:
                ranked = np.sort(rows) if better == "lower" else -np.sort(-rows)
                found[points] = ranked @ chances_of_best(rows.shape[1], fewest)
        return found

    def means(self, otherwise: Floats) -> Floats:
        """The mean of each point's samples (n,); of a point without any what `otherwise` (n,) has."""
        found, measured = otherwise.copy(), np.flatnonzero(self.counts)
        if len(measured):
            found[measured] = np.add.reduceat(self.values, self.starts[measured]) / self.counts[measured]
        return found

    def alike(self) -> Iterator[tuple[npt.NDArray[np.intp], Floats]]:
        """The points that have several samples, and these in rows; of as many at a time."""
        starts = self.starts
        for count in np.unique(self.counts[self.counts > 1]):
            points = np.flatnonzero(self.counts == count)
            yield points, self.values[starts[points][:, np.newaxis] + np.arange(count)]


def usual_fewest(counts: npt.NDArray[np.intp]) -> int:
    """The fewest samples that points of these counts (n,), n > 0, usually have."""
    last = len(counts) - 1
    return int(np.sort(counts)[min(last, max(1, int(FEW * last)))])


def chances_of_best(count: int, chosen: int) -> Floats:
    """For each of `count` samples (count,), best first, the chance to be the best of `chosen` of them."""
    others = [math.comb(count - rank, chosen - 1) for rank in range(1, count + 1)]
    return np.array(others, dtype=np.float64) / math.comb(count, chosen)
