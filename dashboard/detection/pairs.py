"""Whether a suspected step is real: a sequential test on interleaved pairs, valid after each pair.

A pair is one repetition of the last good and one of the first bad commit, measured next to each other. Its
*share* is how far it moved as a part of the step that is suspected: 1 is the whole step, 0 is nothing.

The interval holds at every number of pairs at once, so that looking after each pair costs nothing. It
inverts the t-test's Bayes factor with a normal prior on the standardised effect and Jeffreys' prior on the
noise (Gönen et al. 2005), which is an e-process whatever the noise's size (Wang & Ramdas 2024, "Anytime-
valid t-tests and confidence sequences for Gaussian means with unknown variance"): by Ville's inequality the
true share is ever left out with a probability of at most `ERROR`. Which of the two commits is measured first
in a pair alternates, so that under no change a share is as often above 0 as below, also where the noise
itself is lopsided.

Something else may slow a repetition by more than the whole step; nothing makes one that much faster. So once
there are enough pairs to tell, a repetition far slower than the others of its commit counts up to a bound
only (Winsor's mean, on one side). Theory says nothing of looking at that after each pair: `python -m
bench.detection.verdicts` measures its error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dashboard.detection.segmentation import Floats

StepVerdict = Literal["confirmed", "refuted", "open"]
PlaceVerdict = Literal["whole", "none", "part", "open"]

# The probability that the interval ever leaves out the truth.
ERROR = 0.01
# Below this many pairs the interval is infinite, whatever they say.
FEWEST_PAIRS = 4
# From so many pairs on, slow repetitions are bounded at so many deviations above their commit's median. The
# deviation is that below the medians, where nothing slows: a Gaussian's lower standard deviation.
FEWEST_TO_BOUND = 8
BOUND_DEVIATIONS = 2.5
LOWER_DEVIATION_QUANTILE = 0.16
# What is as slow as many others is a mode, no accident, and so is what is far faster, since nothing makes one
# that. None is bounded where such a part of all repetitions is far faster, or far off on either side.
FASTER_SHARE, EITHER_SIDE_SHARE = 0.04, 0.3
# This part of a commit's repetitions is never bounded.
UNBOUNDED_SHARE = 0.6
# The prior's scale, in standard deviations of a pair: steps worth a proof stand out of the noise.
PRIOR_SCALE = 5.0
# Of a step that is real, at least this part must be seen; of one that isn't, less.
HALF = 0.5
# Where a step lies wholly on one side of a commit, no more than this part is seen on the other.
NEARLY_NONE, NEARLY_ALL = 0.25, 0.75


@dataclass(frozen=True, slots=True)
class ShareEstimate:
    """The mean share after so many pairs, and the interval that holds the true one.

    None while too few tell.
    """

    pairs: int
    share: float
    low: float | None
    high: float | None

    @property
    def width(self) -> float:
        """Of the interval, in steps; infinite while too few pairs tell."""
        return math.inf if self.low is None or self.high is None else self.high - self.low


def estimate_share(
    good: Sequence[float],
    bad: Sequence[float],
    noise: float = 0.0,
    error: float = ERROR,
    *,
    slowed: bool = True,
) -> ShareEstimate:
    """The share by the pairs so far: values of the good and of the bad commit (n each, finite, one or more).

    Their unit is the suspected step, towards the worse: what is slower is larger. `noise` is the least
    standard deviation of a pair to believe in, `error` the probability that the interval ever leaves out the
    truth. `slowed`: whether something else may have made a value worse, so that one far off is bounded.
    """
    values = np.asarray([good, bad], dtype=np.float64)
    if not values.size or not np.all(np.isfinite(values)):
        raise ValueError("values must be finite, and at least one of each commit")
    below, above = bound_slowed_values(values, noise) if slowed else values
    shares = above - below
    pairs, middle = len(shares), float(shares.mean())
    deviation = max(float(shares.std(ddof=1)), noise) if pairs > 1 else math.inf
    half = interval_half_width(pairs, deviation, error)
    if not math.isfinite(half):
        return ShareEstimate(pairs, middle, None, None)
    return ShareEstimate(pairs, middle, middle - half, middle + half)


def bound_slowed_values(values: Floats, noise: float) -> Floats:
    """Values (commits, n), those far slower than the others of their commit moved to where that begins.

    As they are where repetitions have modes: by chance one commit is in the slow one more often than the
    other, whose slow values would be bounded alone.
    """
    if values.shape[1] < FEWEST_TO_BOUND:
        return values
    middles = np.median(values, axis=1, keepdims=True)
    off = values - middles
    # One deviation for both commits: two bounds of their own would differ, and be taken for a step.
    far = BOUND_DEVIATIONS * max(-float(np.quantile(off, LOWER_DEVIATION_QUANTILE)), noise)
    faster = off < -far
    # What slowed both of a pair alike tells nothing and stays out of it.
    off -= np.maximum(off.min(axis=0), 0.0)
    if np.mean(faster) >= FASTER_SHARE or np.mean(faster | (off > far)) >= EITHER_SIDE_SHARE:
        return values
    return middles + np.minimum(
        off, np.maximum(far, np.quantile(off, UNBOUNDED_SHARE, axis=1, keepdims=True))
    )


def interval_half_width(n: int, deviation: float, error: float = ERROR, prior: float = PRIOR_SCALE) -> float:
    """Half the interval's width for n values of this standard deviation; infinite while n is too small.

    `prior` is the scale of the means that are expected, in these deviations: where it fits, the interval is
    narrowest; it holds for any.
    """
    if n < FEWEST_PAIRS:
        return math.inf
    freedom = n - 1
    spread = 1 + n * prior**2
    bound = (math.sqrt(spread) / error) ** (2 / n)
    if bound >= spread:
        return math.inf
    t = math.sqrt(freedom * (bound - 1) / (1 - bound / spread))
    return t * deviation / math.sqrt(n)


def standard_error(estimate: ShareEstimate, error: float) -> float:
    """Of the mean share whose interval, of this error, is finite: in steps."""
    deviation = estimate.width / 2 / interval_half_width(estimate.pairs, 1.0, error)
    return deviation / math.sqrt(estimate.pairs)


def step_verdict(estimate: ShareEstimate, least: float) -> StepVerdict:
    """Whether the step is real. `least` is the smallest relevant share; a step of less is none.

    Confirmed: surely more than nothing, and relevant. Refuted: surely less than half of what was suspected,
    and not what the first rule calls real.
    """
    if estimate.low is None or estimate.high is None:
        return "open"
    if estimate.low > 0 and estimate.share >= least:
        return "confirmed"
    return "refuted" if estimate.high < max(HALF, least) else "open"


def chance_to_decide(estimate: ShareEstimate, most: int, least: float, error: float) -> float:
    """How likely `most` pairs decide, going by those so far, if the step is there or if nothing is.

    `error` is that of the estimate's interval, and of the one that `most` pairs will have.

    The larger of both: conditional power (Lan and Wittes, "The B-value: a tool for monitoring data",
    Biometrics 1988). Who ends undecided errs by nothing, so this may be asked after each pair. 1 while too
    few tell.
    """
    if not math.isfinite(estimate.width) or most <= estimate.pairs:
        return 1.0
    deviation = estimate.width / 2 / interval_half_width(estimate.pairs, 1.0, error)
    half = interval_half_width(most, deviation, error)
    measured_share = estimate.pairs / most
    spread = deviation * math.sqrt((1 - measured_share) / most)
    confirmed = 1 - _normal_share(
        max(half, least), measured_share * estimate.share + 1 - measured_share, spread
    )
    return max(confirmed, _normal_share(max(HALF, least) - half, measured_share * estimate.share, spread))


def _normal_share(end: float, middle: float, deviation: float) -> float:
    """The share of a normal distribution below `end`."""
    if deviation <= 0:
        return float(end > middle)
    return 0.5 * math.erfc((middle - end) / (deviation * math.sqrt(2)))


def place_verdict(estimate: ShareEstimate, spent: float = 0.0) -> PlaceVerdict:
    """Whether a commit between the good and the bad one has the whole step, none of it, or a part.

    A part, surely more than nothing and surely less than all, means causes on both sides of the commit.
    `spent` is the part of the budget that is spent. To tell the whole from a part takes about four times the
    pairs that tell it from nothing. So once HALF of the budget is spent on what looks like the whole or like
    nothing, and at its end in any case, the half that is sure is enough: with more than nothing of the step a
    cause lies at the commit or before it, with less than all of it one lies behind.
    """
    if estimate.low is None or estimate.high is None:
        return "open"
    late, final = spent >= HALF, spent >= 1.0
    more_than_nothing, less_than_all = estimate.low > 0, estimate.high < 1
    if estimate.share >= NEARLY_ALL and (estimate.low > HALF or (late and more_than_nothing)):
        return "whole"
    if estimate.share <= NEARLY_NONE and (estimate.high < HALF or (late and less_than_all)):
        return "none"
    if more_than_nothing and less_than_all and (final or NEARLY_NONE < estimate.share < NEARLY_ALL):
        return "part"
    if final and more_than_nothing:
        return "whole"
    return "none" if final and less_than_all else "open"
