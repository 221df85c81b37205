"""What the pairs of a confirmation say: the shares of the suspected step, their interval, the verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from dashboard.detection import EFFECT_FLOORS, pairs
from dashboard.detection.types import Kind
from dashboard.models import Confirmation, Metric, Pair

Verdict = Confirmation.Verdict

# Two processes that do the same differ by this much at least, as the logarithm of their ratio.
NOISE = 0.003

OF_PLACE = {"bad": Verdict.BAD, "good": Verdict.GOOD, "between": Verdict.BETWEEN}
# What is sure of a commit in the middle at least, where its pairs don't tell how much of the step it has.
SURE = {
    "bad": "it surely has a part of the step at least",
    "good": "it surely lacks a part of the step at least",
    "between": "it surely has a part of the step, and lacks one",
}
OF_STEP = {"confirmed": Verdict.CONFIRMED, "refuted": Verdict.REFUTED}


@dataclass(frozen=True, slots=True)
class Weighed:
    """The ratio bad / good with its interval (None where values have no ratio), and the verdict.

    Empty: go on.
    """

    ratio: float | None
    low: float | None
    high: float | None
    verdict: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """Measures values in suspected steps: by logarithms, or plainly where one isn't positive.

    `before` and `after` are on the metric's ratio scale.
    """

    metric: Metric
    before: float
    after: float
    logarithmic: bool

    @classmethod
    def of(cls, metric: Metric, before: float, after: float, measured: Sequence[Pair]) -> Scale:
        plain = [before, after, *(value for pair in measured for value in (pair.good, pair.bad))]
        values = [metric.on_ratio_scale(value) for value in plain]
        return cls(metric, values[0], values[1], logarithmic=min(values) > 0)

    @property
    def step(self) -> float:
        """The suspected step, signed; as a logarithm where there is one."""
        return math.log(self.after / self.before) if self.logarithmic else self.after - self.before

    def steps(self, value: float) -> float:
        """How many steps a value lies above the level before, towards the worse."""
        scaled = self.metric.on_ratio_scale(value)
        return (math.log(scaled / self.before) if self.logarithmic else scaled - self.before) / self.step

    def ratio(self, share: float | None) -> float | None:
        return math.exp(share * self.step) if self.logarithmic and share is not None else None


def weigh(row: Confirmation) -> Weighed:
    """Weigh the undisturbed pairs so far; an empty verdict asks for another pair."""
    measured = list(row.pairs.all())
    calm = [pair for pair in measured if not pair.disturbed]
    project = row.regression.project
    spent = max(len(measured) / project.confirmation_pairs, row.seconds / (60 * project.confirmation_minutes))
    if len(calm) < pairs.FEWEST_PAIRS:
        if spent < 1:
            return Weighed(None, None, None, "")
        return Weighed(None, None, None, Verdict.UNDECIDED, too_few(len(calm), len(measured)))
    scale = Scale.of(row.series.metric, row.before, row.after, calm)
    floor = EFFECT_FLOORS[cast(Kind, row.series.metric.kind)].long
    weight = shares(row, scale, calm)
    ends = sorted(end for end in (scale.ratio(weight.low), scale.ratio(weight.high)) if end is not None)
    low, high = ends if len(ends) == 2 else (None, None)
    if row.purpose == Confirmation.Purpose.CONFIRM:
        least = math.log1p(floor) / abs(scale.step) if scale.logarithmic else 0.0
        verdict, told = OF_STEP.get(pairs.confirmation_verdict(weight, least), ""), ""
    else:
        verdict, told = _placed(weight, spent)
    if not verdict and spent >= 1:
        verdict, told = Verdict.UNDECIDED, "the interval still allows both answers"
    reason = f"after {len(measured)} pairs in {row.seconds:.0f} s {told}" if told else ""
    return Weighed(scale.ratio(weight.share), low, high, verdict, reason)


def too_few(calm: int, measured: int) -> str:
    """Why what there is can't be weighed."""
    if calm < measured:
        return f"only {calm} of {measured} pairs were undisturbed"
    return f"{measured} pairs spent the budget, and {pairs.FEWEST_PAIRS} are needed"


def _placed(weight: pairs.ShareEstimate, spent: float) -> tuple[str, str]:
    """The verdict on a commit in the middle, and what is sure of it where that isn't all."""
    sure = pairs.bisection_verdict(weight, spent)
    return OF_PLACE.get(sure, ""), SURE.get(sure, "") if pairs.bisection_verdict(weight) != sure else ""


def place(row: Confirmation, before: float, after: float) -> str:
    """What a confirmation's pairs say of its bad commit: does it have the whole of this step, none, a part?

    Empty where they don't tell. The step may be another one than was suspected when they were measured.
    """
    calm = [pair for pair in row.pairs.all() if not pair.disturbed]
    if len(calm) < pairs.FEWEST_PAIRS:
        return ""
    scale = Scale.of(row.series.metric, before, after, calm)
    return OF_PLACE.get(pairs.bisection_verdict(shares(row, scale, calm)), "")


def shares(row: Confirmation, scale: Scale, calm: Sequence[Pair]) -> pairs.ShareEstimate:
    noise = NOISE if scale.logarithmic else NOISE * abs(scale.before)
    good, bad = [scale.steps(pair.good) for pair in calm], [scale.steps(pair.bad) for pair in calm]
    return pairs.estimate_share(good, bad, noise / abs(scale.step), row.error)
