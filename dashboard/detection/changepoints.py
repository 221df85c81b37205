"""`detect` and `suspect`: the change points of plain values, without samples or a kind."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from dashboard.detection.growing_history import find_alarms
from dashboard.detection.history_fit import find_starts, finite_values, scale_history
from dashboard.detection.medians import fast_median
from dashboard.detection.rules import ALARM, SUSPICION
from dashboard.detection.segmentation import KNOWN_COST, Floats
from dashboard.detection.short_histories import first_starts, with_first_starts

# A suspicion may rest on the newest points alone, on one even, where they are so many noises off their level,
# and so many times as far as any point of it was before: a series that throws outliers sets its own mark.
FAR_OFF = 6.0
FARTHER_FACTOR = 1.5
FAR_WINDOW = 50
FAR_POINTS = 3  # with one more the segmentation sees it in any case


def detect(values: Sequence[float]) -> list[int]:
    """The indices (ascending, never 0) at which a new level starts, for a history as it stands.

    Deterministic. Few false alarms: an alarm without any measurement repeated. Raises ValueError for a value
    that isn't finite.
    """
    return find_alarms(values)


def detect_again(values: Sequence[float], known: Collection[int]) -> list[int]:
    """What `detect` finds, where a little noise neither moves nor removes what is `known` from before.

    If it does, the best of the known starts and of those found now are taken, provided that none is lost by
    that: a known start needs less than a new one, and its step is no noise.
    """
    found = detect(values)
    if set(known) <= set(found):
        return found
    parts = dict.fromkeys(found, 1.0) | dict.fromkeys(known, KNOWN_COST)
    kept = find_starts(scale_history(values, ALARM.reach, known), ALARM, parts)
    kept = with_first_starts(first_starts(finite_values(values)), kept)
    return kept if len(kept) >= len(found) else found


def suspect(values: Sequence[float]) -> list[int]:
    """The same, earlier and with more false ones: where it is worth measuring again. See `detect`."""
    history = scale_history(values, SUSPICION.reach)
    starts, n = find_starts(history, SUSPICION), len(history.values)
    begin = max(starts[-1] if starts else 0, n - FAR_WINDOW - FAR_POINTS)
    far = count_far_points(history.values[begin:], history.noise)
    return [*starts, n - far] if far else starts


def count_far_points(level: Floats, sigma: float) -> int:
    """How many of the newest points of a level (n,) are far off, and farther than any before them."""
    for count in range(FAR_POINTS, 0, -1):
        known, newest = level[:-count][-FAR_WINDOW:], level[-count:]
        if len(known) <= SUSPICION.baseline:
            continue
        centre = fast_median(known)
        mark = max(FAR_OFF * sigma, FARTHER_FACTOR * float(np.abs(known - centre).max()))
        if (newest - centre > mark).all() or (centre - newest > mark).all():
            return count
    return 0
