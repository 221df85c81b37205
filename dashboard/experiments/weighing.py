"""What the pairs of an experiment say: the ratio with its interval, and the verdict once there is one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from dashboard.detection import EFFECT_FLOORS, pairs
from dashboard.detection.types import Kind
from dashboard.experiments.scale import StepScale
from dashboard.metric_scale import MetricScale
from dashboard.models import Experiment, ExperimentPair, Metric

Question = Experiment.Question
Verdict = Experiment.Verdict

VERDICT_OF_PLACE = {"bad": Verdict.WHOLE, "good": Verdict.NONE, "between": Verdict.PART}
VERDICT_OF_TEST = {"confirmed": Verdict.CONFIRMED, "refuted": Verdict.REFUTED}

Values = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Weighed:
    """The ratio head / base with its interval (None where values have no ratio), and the verdict.

    An empty verdict asks for another pair. `reason`: why there is no clearer verdict, as a code with values.
    """

    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: str = ""
    reason: Mapping[str, Any] = field(default_factory=dict)


def weigh_experiment(experiment: Experiment, measured: Sequence[ExperimentPair], seconds: float) -> Weighed:
    """Weigh the undisturbed pairs so far; all took `seconds` together."""
    calm = [(pair.base, pair.head) for pair in measured if not pair.disturbed]
    spent = max(len(measured) / experiment.most_pairs, seconds / experiment.most_seconds)
    took = {"pairs": len(measured), "seconds": seconds}
    if len(calm) < pairs.FEWEST_PAIRS:
        if spent < 1:
            return Weighed()
        return Weighed(verdict=Verdict.UNDECIDED, reason={"code": "too few pairs", "calm": len(calm), **took})
    scale = scale_of(experiment, calm)
    share = estimate_head_share(scale, calm, experiment.error)
    verdict, reason = _verdict(experiment, share, scale, spent)
    if not verdict and spent >= 1:
        verdict, reason = Verdict.UNDECIDED, {"code": "both answers possible"}
    ends = sorted(end for end in (scale.ratio_of(share.low), scale.ratio_of(share.high)) if end is not None)
    low, high = ends if len(ends) == 2 else (None, None)
    return Weighed(scale.ratio_of(share.share), low, high, verdict, {**reason, **took} if reason else {})


def scale_of(experiment: Experiment, calm: Sequence[Values]) -> StepScale:
    """The suspected step as one unit; of an estimate a ratio of e, or where values have none the metric's
    unit.
    """
    values = [value for pair in calm for value in pair]
    if experiment.question != Question.ESTIMATE:
        before, after = cast(float, experiment.before), cast(float, experiment.after)
        return StepScale.of_values(experiment.metric, before, after, values)
    positive = min(experiment.metric.on_ratio_scale(value) for value in values) > 0
    worse = 1 if experiment.metric.better == Metric.Better.LOWER else -1
    # A unit lies towards the worse: a repetition that something slowed counts up to a bound only.
    after = math.exp(worse) if positive else 1.0 + worse
    return StepScale(experiment.metric, 1.0, after, logarithmic=positive)


def estimate_head_share(scale: StepScale, calm: Sequence[Values], error: float) -> pairs.ShareEstimate:
    """How many units the heads lie above their bases, with the interval that is valid at every look."""
    base = [scale.share_of_step(value) for value, _ in calm]
    head = [scale.share_of_step(value) for _, value in calm]
    return pairs.estimate_share(base, head, scale.noise, error)


def _verdict(
    experiment: Experiment, share: pairs.ShareEstimate, scale: StepScale, spent: float
) -> tuple[str, dict[str, Any]]:
    if experiment.question == Question.ESTIMATE:
        return (Verdict.ESTIMATED if is_precise(experiment, share, scale) else ""), {}
    if experiment.question == Question.TEST:
        floor = EFFECT_FLOORS[cast(Kind, experiment.metric.kind)].long
        least = math.log1p(floor) / abs(scale.step) if scale.logarithmic else 0.0
        return VERDICT_OF_TEST.get(pairs.confirmation_verdict(share, least), ""), {}
    place = pairs.bisection_verdict(share, spent)
    sure = place == "open" or pairs.bisection_verdict(share) == place
    return VERDICT_OF_PLACE.get(place, ""), {} if sure else {"code": "budget spent", "sure": place}


def is_precise(experiment: Experiment, share: pairs.ShareEstimate, scale: StepScale) -> bool:
    """True once the interval of the ratio is as narrow as was asked for; a difference without ratios never
    is.
    """
    if share.low is None or share.high is None or experiment.precision is None or not scale.logarithmic:
        return False
    return (share.high - share.low) / 2 <= math.log1p(experiment.precision)


def place_step(metric: MetricScale, before: float, after: float, calm: Sequence[Values], error: float) -> str:
    """What pairs say of a head: has it the whole of this step, none, or a part; empty where they don't tell.

    The step may be another one than was suspected when they were measured.
    """
    if len(calm) < pairs.FEWEST_PAIRS:
        return ""
    scale = StepScale.of_values(metric, before, after, [value for pair in calm for value in pair])
    return VERDICT_OF_PLACE.get(pairs.bisection_verdict(estimate_head_share(scale, calm, error)), "")
