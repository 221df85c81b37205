"""The verdict on a claim, by what was claimed and the interval that was measured: pure, of harness and site.

A claim *holds* where the whole interval lies within what is claimed, give or take its tolerance. It is
refuted where the whole interval lies outside. Everything between is *not known*: the interval is too wide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .claim import NO_DIFFERENCE, Claim, Estimate
from .readings import WHOLES, split_spelling

HOLDS, NOT_KNOWN, MEASURED = "holds", "not known", "measured"
SMALLER, LARGER, NONE, OPPOSITE = "smaller", "larger", "none", "opposite"
REFUTED = frozenset({SMALLER, LARGER, NONE, OPPOSITE})
"""Less than claimed; more; of a ratio no difference at all; and the contrary of what is claimed."""

VERDICT_TEXTS = {
    HOLDS: "holds",
    SMALLER: "refuted: less than claimed",
    LARGER: "refuted: more than claimed",
    NONE: "refuted: no difference",
    OPPOSITE: "refuted: the opposite",
    NOT_KNOWN: "not known",
    MEASURED: "measured",
}
"""As tables, pages and messages say them."""

DOUBT = "?"
"""Ends a verdict that rests on too few pairs."""

TOLERANCE = 0.1
"""What a claim without a tolerance of its own may be missed by, for documents round: of a ratio this part of
its distance from 1, and NO_DIFFERENCE at least; of a value this part of it."""


@dataclass(frozen=True, slots=True)
class AcceptedRange:
    """The values that agree with a claim, its tolerance included; infinite where it has no bound."""

    low: float
    high: float

    def judge(self, estimate: Estimate) -> str:
        """Return holds, smaller, larger or not known, by where the interval lies."""
        if self.low <= estimate.low and estimate.high <= self.high:
            return HOLDS
        if estimate.high < self.low:
            return SMALLER
        return LARGER if estimate.low > self.high else NOT_KNOWN


def judge_estimate(claim: Claim, estimate: Estimate) -> str:
    """Return the verdict on a measurement: holds, not known, or one of REFUTED.

    The estimate is how many times better `after` is, or the one case's value. A claim about one case that
    names no number is `measured`.
    """
    accepted = accepted_range(claim)
    if accepted is None:
        return MEASURED
    effect = invert_ratio(estimate) if claim.direction == "worse" else _at_most_whole(claim, estimate)
    verdict = accepted.judge(effect)
    if verdict != SMALLER or claim.before is None:
        return verdict
    if claim.direction == "same":
        return OPPOSITE
    if effect.high < 1 and effect.value <= 1 - NO_DIFFERENCE:
        return OPPOSITE
    return NONE if effect.high < 1 + NO_DIFFERENCE else SMALLER


def accepted_range(claim: Claim) -> AcceptedRange | None:
    """Return what agrees with the claim; None for one case of which no number is claimed.

    Of a loss (`worse`) it is how many times worse.
    """
    if claim.before is None:
        if claim.low is None and claim.high is None:
            return None
        part = TOLERANCE if claim.tolerance is None else claim.tolerance
        margins = [part * abs(bound or 0.0) for bound in (claim.low, claim.high)]
    elif claim.direction == "same":
        bound = claim.high or 1.0
        return AcceptedRange(1 / bound, bound)
    elif claim.low is None and claim.high is None:
        return AcceptedRange(1 + NO_DIFFERENCE, math.inf)
    else:
        margins = [_ratio_margin(claim, bound) for bound in (claim.low, claim.high)]
    low = -math.inf if claim.low is None else claim.low - margins[0]
    high = math.inf if claim.high is None else claim.high + margins[1]
    return AcceptedRange(low, _up_to_whole(claim, high))


def _up_to_whole(claim: Claim, high: float) -> float:
    """Return the upper end, at most all of what the metric is a part of unless the claim itself says more."""
    limit = _find_whole(claim)
    return high if limit is None else min(high, limit)


def _at_most_whole(claim: Claim, estimate: Estimate) -> Estimate:
    """Return the estimate, in which what is hardly more than all of something is all of it.

    Medians of phases that cover a step don't add up to the step's own.
    """
    limit = _find_whole(claim)
    if limit is None:
        return estimate
    numbers = estimate.value, estimate.low, estimate.high
    return Estimate(
        *(limit if limit < number <= limit * (1 + NO_DIFFERENCE) else number for number in numbers)
    )


def _find_whole(claim: Claim) -> float | None:
    """Return what all is of what the metric is a part of, in the claim's unit.

    None where it is no part of anything, and where the claim has no upper end or itself says more.
    """
    whole = WHOLES.get(split_spelling(claim.metric)[0])
    if claim.before is not None or claim.high is None or whole is None:
        return None
    limit = whole * claim.factor
    return limit if claim.high <= limit else None


def invert_ratio(ratio: Estimate) -> Estimate:
    """Return how many times worse something is that is so many times better."""
    value, low, high = (
        1 / number if number > 0 else math.inf for number in (ratio.value, ratio.high, ratio.low)
    )
    return Estimate(value, low, high)


def _ratio_margin(claim: Claim, bound: float | None) -> float:
    """Return by how much a ratio may miss its bound: never so much that no difference would agree."""
    distance = abs((bound or 1.0) - 1)
    if claim.tolerance is not None:
        return claim.tolerance * distance
    return min(max(TOLERANCE * distance, NO_DIFFERENCE), distance / 2)
