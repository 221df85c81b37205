"""Steps or noisy stretches: a busy machine's points scatter more for a while, around the old level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dashboard.detection.levels import WINDOW_POINTS, drop_weakest, robust_level
from dashboard.detection.segmentation import Floats

POINTS_EARLIER = 10  # a noisy stretch may have begun so long before the step that it looks like
# Squares of noises: an outlier of a level counts as three off, since less would hide how much its points
# scatter, and a point of a noisy stretch as six at most.
OWN_LEVEL_CAP, NOISY_STRETCH_CAP = 9.0, 36.0


def drop_noisy_stretches(
    starts: Sequence[int], values: Floats, noise: float, least: float, parts: Mapping[int, float]
) -> list[int]:
    """Those starts around which two levels fit values (n,) better than one level with a noisy stretch.

    Better by `least`, or by the part of it asked there. Either side may be the noisy one.
    """

    def advantage(a: int, b: int, c: int) -> float:
        before, after = (
            values[max(a, b - WINDOW_POINTS) : b] / noise,
            values[b : min(c, b + WINDOW_POINTS)] / noise,
        )
        either = min(level_advantage(before, after), level_advantage(after[::-1], before[::-1]))
        return either / parts.get(b, 1.0)

    return drop_weakest(starts, len(values), advantage, least)


def level_advantage(old: Floats, new: Floats) -> float:
    """How much better two levels fit points (m,) and (n,), in noises, than one level that turns noisy.

    Twice the log-likelihood ratio of Gaussians. The noisy stretch has a variance of its own around the old
    level, never below that of the noise, and holds all new points and as many of the last old ones as fit it.
    """
    recent, level = old[-POINTS_EARLIER:], robust_level(old, 1.0)
    around_old = np.concatenate([recent, new]) - level
    around_own = np.concatenate([recent - level, new - robust_level(new, 1.0)])
    begins = np.arange(len(recent) + 1)  # of the stretch; it ends with the last point
    points = len(around_old) - begins
    noisy = np.minimum(around_old**2, NOISY_STRETCH_CAP)[::-1].cumsum()[::-1][begins]
    levels = np.minimum(around_own**2, OWN_LEVEL_CAP)[::-1].cumsum()[::-1][begins]
    variance = np.maximum(noisy / points, 1.0)
    return float((points * np.log(variance) + noisy / variance - levels).min())
