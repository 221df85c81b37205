"""How much evidence makes a change point: the rules that `detect` and `suspect` follow."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dashboard.detection.levels import WINDOW_POINTS
from dashboard.detection.segmentation import Loss


@dataclass(frozen=True, slots=True)
class Rule:
    """How much evidence makes a change point.

    A new level costs `cap` plus `growth` for each e-fold of the history's length, because a longer history
    has more places at which noise could pass for a step. `cap` bounds what a single point can say, which
    makes (penalty / cap) points the fewest that can carry an alarm. `reach` is the longest lag, in points, at
    which wander counts as noise. No level is left before `baseline` points: until then it is unknown.
    A step of fewer than `least_step` noises isn't worth an alarm, however sure it is. Against wander a step
    needs this `evidence`: its square over the variance that autocorrelation gives it. Two levels must fit
    better by this `advantage` than one with a noisy stretch, and by `over_slope` than a line. The first
    `paid_within` points of a new level have to pay for it. Zero asks none, and lets all its points pay.
    """

    cap: float
    growth: float
    reach: int
    baseline: int
    least_step: float = 0.0
    evidence: float = 0.0
    advantage: float = 0.0
    over_slope: float = 0.0
    paid_within: int = 0

    def loss(self, n: int) -> Loss:
        """The loss for a history of n points."""
        return Loss(self.cap, self.cap + self.growth * math.log(max(n, 10)))


ALARM = Rule(
    cap=5.0,
    growth=3.0,
    reach=10,
    baseline=15,
    least_step=0.9,
    evidence=9.0,
    advantage=8.0,
    over_slope=1.0,
    paid_within=WINDOW_POINTS,
)
SUSPICION = Rule(cap=9.0, growth=1.5, reach=3, baseline=3)


@dataclass(frozen=True, slots=True)
class ShortRule:
    """How clear a step of a short history has to be.

    `before` and `after` are the fewest points of the level before it and of its own. `chance` says how seldom
    independent noise makes a given step; histories aren't that kind, and make one more often. A straight line
    leaves `over_line` times the squares that the two levels leave, or more.
    """

    chance: float
    before: int
    after: int
    over_line: float


CLEAR = ShortRule(chance=1e-5, before=6, after=4, over_line=2.0)
# Of a longer history: what ended sooner was a burst.
CLEAR_AND_LASTING = replace(CLEAR, after=10)
