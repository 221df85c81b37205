"""Steps that only a long level shows: most are the wander of what seemed to be one level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dashboard.detection.drift import bounded_fit_cost
from dashboard.detection.levels import drop_weakest
from dashboard.detection.noise import largest_lag_noise
from dashboard.detection.rules import Rule
from dashboard.detection.segmentation import Floats


def drop_slow_starts(
    starts: Sequence[int], values: Floats, noise: float, rule: Rule, parts: Mapping[int, float]
) -> list[int]:
    """Those starts of values (n,) that a look `rule.paid_within` points later would have found.

    By then the level before and those points have to pay the penalty of that look, or the part of it asked
    there, in the noise that they show themselves if it is more. More points say no more for it: a level that
    goes on far enough differs a little from any other, and calm points after it make it look higher.
    """

    def paid(a: int, b: int, c: int) -> float:
        end = b + rule.paid_within
        if c < end:
            return np.inf
        seen, price = values[a:end], rule.loss(end).penalty * parts.get(b, 1.0)
        noise_then = max(noise, largest_lag_noise(seen, rule.reach))
        return saved_cost(seen / noise_then, b - a, rule.cap) / price

    return drop_weakest(starts, len(values), paid, least=1.0)


def saved_cost(values: Floats, at: int, cap: float) -> float:
    """What two levels of values (n,), in noises, the second from `at` on, cost less than one."""
    ones = np.ones(len(values))
    whole, before, after = (
        bounded_fit_cost(values[part], ones[part], cap, slope=False)
        for part in (slice(None), slice(0, at), slice(at, None))
    )
    return whole - before - after
