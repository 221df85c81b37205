"""Which changes are worth a person's time: the effect floor of each kind of metric."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dashboard.detection.types import Kind

WANDER_POINTS = 20  # from so many points on a series has shown how it wanders


@dataclass(frozen=True, slots=True)
class EffectFloor:
    """The smallest relevant step, as a fraction of the level, in a short and in a long history.

    It is also `least` in the kind's unit: growth that hovers around zero has no level to be a fraction of.
    """

    short: float
    long: float
    least: float = 0.0

    def at(self, points: int) -> float:
        """The floor for a history of so many points; it falls as the history teaches the noise."""
        if points < WANDER_POINTS:
            return self.short
        return max(self.long, self.short * WANDER_POINTS / points)


EFFECT_FLOORS: dict[Kind, EffectFloor] = {
    "time": EffectFloor(short=0.10, long=0.03),
    "rate": EffectFloor(short=0.09, long=0.03),  # 1 / 1.10: the same step as +10 % of time
    "memory": EffectFloor(short=0.05, long=0.02, least=2.0**20),  # bytes, or bytes per 1000 steps
    "utilization": EffectFloor(short=0.10, long=0.05),
    "counter": EffectFloor(short=0.05, long=0.05),
    "quality": EffectFloor(short=0.20, long=0.10),
}


def exceeds_floor(ratio: float, floor: float) -> bool:
    """True where a ratio leaves 1 by the floor or more; -9 % is +10 % seen from its other end."""
    return ratio <= 0 or abs(math.log(ratio)) >= math.log1p(floor) - 1e-9
