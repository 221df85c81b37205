"""What a run's parts have in common is taken out of each: a slow hour of the machine is no step of a part.

A run on a busy machine is slow in all its phases. How far a part lies off where the others don't is known
more exactly than where it lies: the others' middle deviation is a control variate (Lavenberg and Welch,
*A Perspective on the Use of Control Variables*, Management Science 1981). It is a median over parts, as the
size factors of sequencing data are over genes (Anders and Huber, Genome Biology 2010), so that a part that
really steps doesn't make the others look as if they stepped the other way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dashboard.detection.medians import fast_median
from dashboard.detection.noise import MAD_TO_SIGMA
from dashboard.detection.relevance import WANDER_POINTS
from dashboard.detection.segmentation import Floats
from dashboard.detection.types import Point, Series

# Points on both sides whose median is a part's level at a point: what lasts for longer is a step of its own.
REACH_POINTS = 15
# Fewer others have no middle that a step of one of them leaves where it is.
FEWEST_OTHERS = 3
# The noise has to fall at least to this: what helps less may be chance.
WORTH_IT = 0.95


def without_common_noise(parts: Mapping[str, Series]) -> dict[str, Series]:
    """The parts, n points each, without what they share from point to point; those that share nothing as they
    are.

    In a short history and with few parts nothing is known to be shared.
    """
    logarithms = {name: logs for name, part in parts.items() if is_long_enough(logs := logarithms_of(part))}
    found = dict(parts)
    if len(logarithms) <= FEWEST_OTHERS:
        return found
    deviations = np.array([local_deviations(logs) for logs in logarithms.values()])
    for row, name in enumerate(logarithms):
        others = np.delete(deviations, row, axis=0)
        shared = middle_of_several(others)
        if is_shared(deviations[row], shared):
            found[name] = divided_by(parts[name], np.exp(shared))
    return found


def logarithms_of(part: Series) -> Floats:
    """Those of a part's points (n,); NaN for a tainted one, and for one that spent nothing in it."""
    values = np.array([0.0 if point.tainted else point.value for point in part.points])
    return np.asarray(np.log(values, out=np.full(len(values), np.nan), where=values > 0))


def is_long_enough(logs: Floats) -> bool:
    return int(np.isfinite(logs).sum()) >= WANDER_POINTS


def local_deviations(logs: Floats) -> Floats:
    """Logarithms (n,) less their running median; NaN where they are."""
    padded = np.concatenate([np.full(REACH_POINTS, np.nan), logs, np.full(REACH_POINTS, np.nan)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * REACH_POINTS + 1)
    return np.asarray(logs - median_of_known(windows, axis=1))


def middle_of_several(deviations: Floats) -> Floats:
    """The median over parts of deviations (parts, n) at each point; 0 where fewer than three are known."""
    known = np.isfinite(deviations).sum(axis=0)
    return np.asarray(np.where(known >= FEWEST_OTHERS, median_of_known(deviations, axis=0), 0.0))


def median_of_known(values: Floats, axis: int) -> Floats:
    """The median of the finite ones; 0 where there are none."""
    # As numpy's median of what isn't NaN, which takes ten times as long: it looks at each row by itself.
    ordered = np.sort(values, axis=axis)
    count = np.isfinite(values).sum(axis=axis, keepdims=True)
    places = np.maximum([count - 1, count], 0) // 2
    low, high = (np.take_along_axis(ordered, place, axis=axis) for place in places)
    return np.asarray(np.where(count > 0, (low + high) / 2, 0.0).squeeze(axis))


def is_shared(own: Floats, shared: Floats) -> bool:
    """Whether a part's deviations (n,) are smaller without the shared ones.

    All of them or none: a part of them, as a regression would have it, leaves the rest of each burst.
    """
    known = np.isfinite(own)
    return robust_spread((own - shared)[known]) <= WORTH_IT * robust_spread(own[known])


def robust_spread(values: Floats) -> float:
    """The robust deviation from 0 of values (n,)."""
    return MAD_TO_SIGMA * fast_median(np.abs(values)) if len(values) else 0.0


def divided_by(part: Series, factors: Floats) -> Series:
    points = [
        Point(point.value / factor, tuple([sample / factor for sample in point.samples]), point.tainted)
        for point, factor in zip(part.points, factors.tolist(), strict=True)
    ]
    return replace(part, points=points)
