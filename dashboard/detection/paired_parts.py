"""What interleaved pairs say of a step that only parts of the whole show: of the parts, and of their sum.

A part has its own noise, the whole has that of all parts: pairs tell of a part's step long before they tell
of the whole's. But what one part lost another may have gained. So a step is proved by two things: the parts
that were suspected got slower, and so did the sum of all parts, each without what they have in common.

Within a pair the head is slow in all its parts where something slowed it down. By how much is the middle of
the parts that nobody suspects (`common_noise`). A middle that many small parts move makes a large one look as
if it moved the other way, and the reverse: of two middles, one by parts and one by time, both have to agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from dashboard.detection.common_noise import FEWEST_OTHERS
from dashboard.detection.paired_steps import narrower_estimate, steps_verdict
from dashboard.detection.pairs import (
    ERROR,
    ShareEstimate,
    StepVerdict,
    estimate_share,
    step_verdict,
)
from dashboard.detection.segmentation import Floats

PartsVerdict = Literal[StepVerdict, "moved"]

# A part that takes less of the whole has too much noise of its own to tell what all have in common.
LEAST_TO_COMPARE = 0.03
# Of what the suspected parts grew by, so much has to be left in the sum of all, to have been lost: a part
# that shrank moves the middle of the others a little. Where others surely took back so much, it only moved.
LOST_SHARE, MADE_UP_SHARE = 0.65, 0.75


@dataclass(frozen=True, slots=True)
class PartsEstimate:
    """By how many suspected steps the suspected parts grew, and the sum of all parts, by each of the middles.

    `shrunk`: by how much all other parts that shrank did so together, 0 or more; `taken_back`: those that
    surely did.
    """

    parts: ShareEstimate
    sums: tuple[ShareEstimate, ...]
    shrunk: float = 0.0
    taken_back: float = 0.0

    @property
    def sum(self) -> ShareEstimate:
        """The smaller one: no less was lost."""
        return min(self.sums, key=lambda estimate: estimate.share)


def estimate_parts(
    good: Floats,
    bad: Floats,
    suspected: npt.NDArray[np.bool_],
    step: float,
    least_noise: float,
    error: float = ERROR,
) -> PartsEstimate:
    """By the pairs so far: what each part took of the good and of the bad commit (parts, n), 0 or more.

    `suspected` (parts,) are those that show the step. `step` is how much longer the whole took, in the same
    unit, positive; `least_noise` the least deviation of a pair to believe in, as a fraction of what is
    weighed; `error` the probability that an interval ever leaves out the truth.
    """

    def estimate_sum(rows: npt.NDArray[np.bool_], factors: Floats, error: float) -> ShareEstimate:
        old, new = good[rows].sum(axis=0) / step, (bad[rows] / factors).sum(axis=0) / step
        return estimate_share(old.tolist(), new.tolist(), least_noise * float(np.median(old)), error)

    commons = common_factors(good, bad, suspected)
    of_suspected = [estimate_sum(suspected, factors, error) for factors in commons]
    others = [np.arange(len(good)) == row for row in np.flatnonzero(~suspected)]
    of_others = [[estimate_sum(row, factors, error / len(others)) for row in others] for factors in commons]
    return PartsEstimate(
        parts=min(of_suspected, key=lambda estimate: estimate.share),
        sums=tuple(estimate_sum(np.ones(len(good), dtype=np.bool_), factors, error) for factors in commons),
        shrunk=max(sum(max(0.0, -found.share) for found in by_middle) for by_middle in of_others),
        taken_back=max(
            sum(-found.share for found in by_middle if found.high is not None and found.high < 0)
            for by_middle in of_others
        ),
    )


def common_factors(good: Floats, bad: Floats, suspected: npt.NDArray[np.bool_]) -> list[Floats]:
    """How many times as long all parts of the bad commit took that nobody suspects, in each pair (n,).

    By two middles, over parts and over time; 1 where too few parts are large enough to have one.
    """
    typical = np.median(good, axis=1)
    large = (typical >= LEAST_TO_COMPARE * typical.sum()) & ~suspected
    large &= (good > 0).all(axis=1) & (bad > 0).all(axis=1)
    if large.sum() < FEWEST_OTHERS:
        return [np.ones(good.shape[1])]
    ratios = np.log(bad[large] / good[large])
    even = np.median(ratios, axis=0)
    return [np.exp(even), np.exp(weighted_median(ratios, typical[large]))]


def weighted_median(values: Floats, weights: Floats) -> Floats:
    """The median over rows (rows, n) of which each counts by its weight (rows,)."""
    order = np.argsort(values, axis=0)
    below = np.cumsum(weights[order], axis=0)
    middle = (below >= weights.sum() / 2).argmax(axis=0)
    return np.asarray(np.take_along_axis(values, order, axis=0)[middle, np.arange(values.shape[1])])


def decide_step(
    whole: ShareEstimate,
    steps: ShareEstimate | None,
    parts: PartsEstimate | None,
    least: float,
    error: float = ERROR,
) -> PartsVerdict:
    """Whether a step is real: by the whole, where that leaves it open by its single steps, then by its parts.

    `least` is the smallest relevant share, `error` that of `whole`. `steps` and `parts`: None where they
    weren't looked at.
    """
    verdicts = (
        step_verdict(whole, least),
        steps_verdict(whole, steps, least, error),
        "open" if parts is None else parts_verdict(narrower_estimate(whole, steps), parts, least),
    )
    return next((verdict for verdict in verdicts if verdict != "open"), "open")


def parts_verdict(whole: ShareEstimate, found: PartsEstimate, least: float) -> PartsVerdict:
    """Whether a step that parts show is real, where the whole's pairs leave it open.

    It is confirmed where the parts and the sum of all surely grew, refuted where the parts surely didn't by
    half of it, and moved where others took it back.
    """
    by_parts = step_verdict(found.parts, least)
    if by_parts != "confirmed":
        return by_parts
    grown = found.parts.share
    left = max(least, LOST_SHARE * grown)
    sums = [step_verdict(estimate, left) for estimate in found.sums]
    if found.taken_back >= MADE_UP_SHARE * grown or all(verdict == "refuted" for verdict in sums):
        return "moved"
    proved = all(verdict == "confirmed" for verdict in sums)
    # Where most others shrank alike their middle did too: that they have only moved the whole has to say.
    lost = min(whole.share, grown - found.shrunk) >= left
    return "confirmed" if proved and lost else "open"
