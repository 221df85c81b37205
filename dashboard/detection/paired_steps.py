"""A small difference by single steps: each step of one side beside the same step of the other.

Where two processes take turns, a step of the head follows the same step of the base within a tenth of a
second, and both do the same. What slows the machine comes and goes within steps: it makes the mean of a
window several per cent too long, and of most steps of both sides it leaves some alone. So a pair's value is
the median of the ratios of its steps. On a machine with more work than processors it was a quarter as noisy
as the ratio of the means.

A median doesn't see what a few steps cost. Those that take longer than most, or shorter, are steps of other
kinds: an evaluation, an update that is due at each tenth. What the median of each kind has beside that of all
is added by the time that the kind takes, and its variance to that of the pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dashboard.detection.pairs import (
    ERROR,
    ShareEstimate,
    StepVerdict,
    interval_half_width,
    standard_error,
    step_verdict,
)
from dashboard.detection.segmentation import Floats

# Fewer steps, or pairs, have no median worth the name.
FEWEST_STEPS, FEWEST_PAIRS = 20, 6
# Larger steps are proved by a few pairs; where one side takes much longer it is disturbed more often too.
LARGEST_STEP = 0.1
# From so many pairs on, one counts up to a bound only: so many deviations off the median.
FEWEST_TO_BOUND, BOUND_DEVIATIONS = 8, 2.5
# The prior's scale, in deviations of a pair: what is asked of single steps is small.
PRIOR_SCALE = 2.0
# Steps are of one kind where their times differ by less than this factor.
KIND_FACTOR = 1.5
# Of the mean of the pairs, that far off it says something else than single steps do.
ERRORS_OF_MEAN = 3.0
# A normal sample's deviation is so many of its median absolute deviations.
OF_MEDIAN_DEVIATION = 1.4826


@dataclass(frozen=True, slots=True)
class ComparedSteps:
    """What single steps say of pairs: of each the logarithm of its ratio (n,), bad / good.

    `kinds`: what steps of other kinds add to that, a logarithm as well, and its standard error.
    """

    typical: Floats
    kinds: float
    kinds_error: float


def compare_steps(good: Floats, bad: Floats) -> ComparedSteps | None:
    """Of the times (steps, n) of the same steps of both commits, positive; None of too few steps."""
    if len(good) < FEWEST_STEPS:
        return None
    ratios = np.log(bad / good)
    typical = np.median(ratios, axis=0)
    return ComparedSteps(typical, *cost_of_kinds(ratios - typical, good, bad))


def estimate_by_steps(
    compared: ComparedSteps,
    good_first: Sequence[bool],
    step: float,
    least_noise: float,
    error: float = ERROR,
) -> ShareEstimate | None:
    """The share by the pairs so far; None of too few.

    `step` is the suspected one, as a logarithm of a ratio of times, 1 where none is; `least_noise` the least
    deviation of a pair to believe in, as a logarithm too.
    """
    pairs = len(compared.typical)
    if pairs < FEWEST_PAIRS:
        return None
    values, deviation = comparable_pairs(compared.typical, good_first)
    deviation = deviation_with_kinds(max(deviation, least_noise), pairs, compared.kinds_error)
    half = interval_half_width(pairs, deviation, error, PRIOR_SCALE)
    share = (float(values.mean()) + compared.kinds) / step
    if not math.isfinite(half):
        return ShareEstimate(pairs, share, None, None)
    reach = half / abs(step)
    return ShareEstimate(pairs, share, share - reach, share + reach)


def deviation_with_kinds(deviation: float, pairs: int, kinds_error: float) -> float:
    """That of a pair by typical steps and by kinds together, which so many pairs know with this error.

    What kinds add varies from pair to pair by as much as their error says, apart from what typical steps do.
    """
    return math.hypot(deviation, kinds_error * math.sqrt(pairs))


def cost_of_kinds(beside: Floats, good: Floats, bad: Floats) -> tuple[float, float]:
    """What steps of other kinds add to the ratio of all, as a logarithm, and its standard error.

    `beside`: log ratios (steps, n), less their pair's median; `good` and `bad`: the times they are of.
    """
    before, after = (np.median(times / np.median(times, axis=0), axis=1) for times in (good, bad))
    kinds = np.round(np.log(np.maximum(before, after)) / math.log(KIND_FACTOR))
    added, variance = 0.0, 0.0
    for kind in np.unique(kinds[kinds != 0]):
        of_kind = beside[kinds == kind]
        weight = before[kinds == kind].sum() / before.sum()
        # By ranks: where most values are alike, those a standard error from the middle hardly differ.
        rank = 0.5 / math.sqrt(of_kind.size)
        below, middle, above = np.quantile(of_kind, [max(0.0, 0.5 - rank), 0.5, min(1.0, 0.5 + rank)])
        added += weight * math.expm1(middle)
        variance += (weight * math.exp(middle) * (above - below) / 2) ** 2
    return math.log1p(added), math.sqrt(variance)


def comparable_pairs(typical: Floats, good_first: Sequence[bool]) -> tuple[Floats, float]:
    """The log ratios of pairs (n,) less what accidents and their order make, and their deviation."""
    values, spent = without_order(bound_far(typical), np.asarray(good_first))
    # A degree of freedom more was spent on the order.
    freedom = len(values) - 1 - spent
    return values, float(values.std(ddof=1)) * math.sqrt((len(values) - 1) / freedom)


def bound_far(values: Floats) -> Floats:
    """Values of pairs (n,), those far off the others moved to where that begins (Winsor's mean).

    Other work may keep in step with one side's turns for a whole window, as another pair does.
    """
    if len(values) < FEWEST_TO_BOUND:
        return values
    middle = np.median(values)
    far = BOUND_DEVIATIONS * OF_MEDIAN_DEVIATION * np.median(np.abs(values - middle))
    return np.clip(values, middle - far, middle + far)


def without_order(values: Floats, good_first: np.ndarray) -> tuple[Floats, int]:
    """Values of pairs (n,) less what the order of their sides makes, and the degrees of freedom that took.

    Who begins is drawn so that both orders come as often: half of their difference is due to it.
    """
    if min(good_first.sum(), (~good_first).sum()) < 2:
        return values, 0
    order = float(values[good_first].mean() - values[~good_first].mean()) / 2
    return values - np.where(good_first, order, -order), 1


def steps_verdict(
    whole: ShareEstimate, steps: ShareEstimate | None, least: float, error: float = ERROR
) -> StepVerdict:
    """Whether single steps decide. `least` is the smallest relevant share, `error` that of `whole`.

    They don't see what comes at any time, in few steps, and in other ones each time. So the mean of the
    pairs, `whole`, has to lie on the same side; and where they refute, it has to refute the whole step too.
    """
    if steps is None:
        return "open"
    found = step_verdict(steps, least)
    agrees = refutes_whole_step(whole, error) if found == "refuted" else whole.share > 0
    return found if agrees else "open"


def refutes_whole_step(whole: ShareEstimate, error: float) -> bool:
    """Whether the mean of the pairs tells nothing from the whole step. `error` is that of its interval.

    Wald's sequential test of one against the other, a share of 0 and of 1: with Jeffreys' prior on the noise
    their likelihood ratio ever reaches 1 / p under the whole step with a probability of some p, however often
    one looks. Where single steps miss the step only the mean keeps it: it may err by as much as both looks.
    """
    if not math.isfinite(whole.width):
        return False
    squares = (whole.pairs - 1) * standard_error(whole, error) ** 2
    # The inverse of a sample's variance is too large on average, by (n - 1) / (n - 3).
    needed = math.pow(2 * error, -2 / (whole.pairs - 3))
    return squares + (1.0 - whole.share) ** 2 > needed * (squares + whole.share**2)


def steps_hold_mean(means: Floats, typical: Floats) -> bool:
    """Whether the mean of pairs bears out what their typical steps say of a difference, (n,) in one unit.

    What comes in few steps, and in other ones each time, the mean alone has: it is then farther off than some
    of its standard errors. Few pairs don't tell.
    """
    if len(means) < FEWEST_PAIRS:
        return False
    bounded = bound_far(means)
    reach = ERRORS_OF_MEAN * float(bounded.std(ddof=1)) / math.sqrt(len(bounded))
    return abs(float(bounded.mean()) - float(bound_far(typical).mean())) <= reach


def narrower_estimate(whole: ShareEstimate, steps: ShareEstimate | None) -> ShareEstimate:
    """The one that tells more."""
    return steps if steps is not None and steps.width < whole.width else whole


def estimate_of_step(whole: ShareEstimate, steps: ShareEstimate | None, least: float) -> ShareEstimate:
    """The one that tells how much of a suspected step is there: the narrower one, of those with the verdict.

    Where the mean of the pairs, `whole`, decides by itself what single steps don't, it has what no median of
    steps finds. `least` is the smallest relevant share.
    """
    decided = step_verdict(whole, least)
    if steps is not None and decided not in ("open", step_verdict(steps, least)):
        return whole
    return narrower_estimate(whole, steps)


def agreed_estimate(
    whole: ShareEstimate, steps: ShareEstimate | None, error: float, largest: float
) -> ShareEstimate:
    """A difference that nobody suspects, as it is shown: by single steps, or else `whole`, of the means.

    What comes in few steps, and in other ones each time, only the means have. So the interval of steps is
    made to hold their middle too, with some standard errors of it on both sides, and tells where it is
    narrower all the same. Where the middle is farther off than these, the means tell.
    `error` is that of `whole`, `largest` the largest share that steps tell.
    """
    if steps is None or steps.low is None or steps.high is None or abs(steps.share) > largest:
        return whole
    if not math.isfinite(whole.width):
        return whole
    reach = ERRORS_OF_MEAN * standard_error(whole, error)
    if not steps.low - reach <= whole.share <= steps.high + reach:
        return whole
    low, high = min(steps.low, whole.share - reach), max(steps.high, whole.share + reach)
    agreed = ShareEstimate(steps.pairs, steps.share, low, high)
    return agreed if agreed.width < whole.width else whole
