"""`detect` and `suspect`: the change points of plain values, without samples or a kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dashboard.detection.rules import ALARM, SUSPICION
from dashboard.detection.segmentation import Floats
from dashboard.detection.watch import Watch

# A suspicion may rest on the newest points alone, on one even, where they are so many noises off their level,
# and so many times as far as any point of it was before: a series that throws outliers sets its own mark.
FAR_OFF = 6.0
FARTHER = 1.5
FAR_WINDOW = 50
FAR_POINTS = 3  # with one more the segmentation sees it in any case


def detect(values: Sequence[float]) -> list[int]:
    """The indices (ascending, never 0) at which a new level starts, for a history as it stands.

    Deterministic. Few false alarms: an alarm without any measurement repeated. Raises ValueError for a value
    that isn't finite. For a history that grows see `Watch`, which gives the same answer.
    """
    return Watch(values, ALARM).starts()


def suspect(values: Sequence[float]) -> list[int]:
    """The same, earlier and with more false ones: where it is worth measuring again. See `detect`."""
    return suspected_starts(Watch(values, SUSPICION))


def suspected_starts(watch: Watch) -> list[int]:
    """The suspicions in a series that is watched by the rule SUSPICION."""
    starts = watch.starts()
    begin = max(starts[-1] if starts else 0, len(watch.scaled) - FAR_WINDOW - FAR_POINTS)
    far = count_far_points(np.array(watch.scaled[begin:]), watch.noise)
    return [*starts, len(watch.scaled) - far] if far else starts


def count_far_points(level: Floats, sigma: float) -> int:
    """How many of the newest points of a level (n,) are far off, and farther than any before them."""
    for count in range(FAR_POINTS, 0, -1):
        known, newest = level[:-count][-FAR_WINDOW:], level[-count:]
        if len(known) <= SUSPICION.baseline:
            continue
        centre = np.median(known)
        mark = max(FAR_OFF * sigma, FARTHER * float(np.abs(known - centre).max()))
        if (newest - centre > mark).all() or (centre - newest > mark).all():
            return count
    return 0
