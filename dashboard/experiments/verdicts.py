"""What the pairs of an experiment say: the ratio with its interval, and the verdict once there is one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from dashboard.detection import EFFECT_FLOORS, pairs
from dashboard.detection.paired_parts import decide_step
from dashboard.detection.paired_steps import (
    ComparedSteps,
    agreed_estimate,
    estimate_by_steps,
    estimate_of_step,
    narrower_estimate,
)
from dashboard.detection.parts import LEAST_OF_WHOLE
from dashboard.detection.types import Kind
from dashboard.experiments.bounds import (
    BoundedDifference,
    MeasuredMetric,
    bound_metric,
    bound_others,
    waits_for_quality,
)
from dashboard.experiments.counted_sides import bound_counters
from dashboard.experiments.phase_steps import PhaseSteps, evaluate_phases
from dashboard.experiments.scale import FARTHEST, StepScale
from dashboard.experiments.single_steps import (
    WITHOUT_STEP,
    evaluate_steps,
    largest_step_effect,
    looks_at_steps,
)
from dashboard.metric_scale import LEAST_NOISE
from dashboard.models import Experiment, ExperimentPair, Metric

Question = Experiment.Question
Verdict = Experiment.Verdict

# What detection calls open is no verdict yet.
OPEN = "open"
# An estimate that settles what it was asked for is at least so precise: what it says is drawn over commits.
USEFUL_PRECISION = 0.25
# A test whose chance to decide within its budget is below this ends: not before so many pairs have answered.
HOPELESS_CHANCE, FEWEST_PAIRS_OF_HOPELESS = 0.05, 16
# Of so many pairs nearly all disturbed, nobody waits for undisturbed ones.
MOST_DISTURBED = 24
# A counter repeats exactly or it doesn't: so many countings of each side tell which.
FEWEST_EXACT = 2

Values = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Interval:
    """A value, and between which ends it surely lies; None where too few pairs tell."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """The ratio head / base, or the difference head - base where values have no ratio, and the verdict.

    An empty verdict asks for another pair. `reason`: why there is no clearer verdict, as a code with values.
    `by_steps`: whether single steps tell it, or else the means of the pairs; None of neither. `surely_worse`:
    of a bound, whether something that it measured is, which needn't be what ends it.
    """

    ratio: Interval | None = None
    difference: Interval | None = None
    verdict: str = ""
    reason: Mapping[str, Any] = field(default_factory=dict)
    by_steps: bool | None = None
    surely_worse: bool = False

    @property
    def columns(self) -> dict[str, float | None]:
        """As experiments and their pairs keep it."""
        ratio, difference = self.ratio or Interval(), self.difference or Interval()
        return {
            "ratio": ratio.value,
            "low": ratio.low,
            "high": ratio.high,
            "difference": difference.value,
            "difference_low": difference.low,
            "difference_high": difference.high,
        }


@dataclass(frozen=True, slots=True)
class StepEstimates:
    """What pairs say of a suspected step, look by look: by the means of their windows, by single steps and by
    the phases that show it, where these tell. `error`: that of each look."""

    scale: StepScale
    error: float
    means: pairs.ShareEstimate
    steps: pairs.ShareEstimate | None
    phases: PhaseSteps | None

    @property
    def narrower(self) -> pairs.ShareEstimate:
        """Of the whole step, the one that tells more."""
        return narrower_estimate(self.means, self.steps)

    @property
    def phase_reason(self) -> dict[str, Any]:
        return self.phases.as_json() if self.phases else {}


def evaluate_experiment(
    experiment: Experiment, measured: Sequence[ExperimentPair], seconds: float
) -> ExperimentResult:
    """Evaluate the undisturbed pairs so far; all took `seconds` together."""
    undisturbed = [(pair.base, pair.head) for pair in measured if not pair.disturbed]
    spent = max(len(measured) / experiment.most_pairs, seconds / experiment.most_seconds)
    took = {"pairs": len(measured), "seconds": seconds}
    if experiment.question == Question.ESTIMATE and repeats_exactly(experiment.metric, undisturbed):
        return _exact_estimate(*undisturbed[0])
    if len(undisturbed) < pairs.FEWEST_PAIRS:
        if spent < 1 and len(measured) < MOST_DISTURBED:
            return ExperimentResult()
        return ExperimentResult(
            verdict=Verdict.UNDECIDED, reason={"code": "too few pairs", "calm": len(undisturbed), **took}
        )
    scale = scale_of(experiment, undisturbed)
    error = error_of_look(experiment, measured)
    share = estimate_head_share(scale, undisturbed, error)
    steps = evaluate_steps(experiment, measured, scale, error)
    if experiment.question in WITHOUT_STEP:
        estimate = agreed_estimate(share, steps, error, largest_step_effect(experiment))
    elif experiment.question == Question.TEST:
        estimate = estimate_of_step(share, steps, least_share(experiment, scale))
    else:
        estimate = narrower_estimate(share, steps)
    surely_worse = False
    if experiment.question == Question.ESTIMATE:
        verdict, reason = _estimate_verdict(experiment, estimate, scale, spent)
    elif experiment.question == Question.BOUND:
        bounded, others = bound_experiment(experiment, measured)
        verdict, reason = _bound_verdict(bounded, others, spent)
        surely_worse = any(each.is_surely_worse for each in (*([bounded] if bounded else []), *others))
    else:
        phases = evaluate_phases(experiment, [pair for pair in measured if not pair.disturbed], error)
        found = StepEstimates(scale, error, share, steps, phases)
        verdict, reason = _step_verdict(experiment, found, spent)
    interval = _interval_of(estimate, scale)
    return ExperimentResult(
        ratio=interval if scale.logarithmic else None,
        difference=None if scale.logarithmic else interval,
        verdict=verdict,
        reason={**reason, **took} if reason else {},
        by_steps=estimate is not share,
        surely_worse=surely_worse,
    )


def median_base(measured: Sequence[ExperimentPair]) -> float | None:
    """The level of the base, by the undisturbed pairs that reported one."""
    bases = [pair.base for pair in measured if not pair.disturbed and not pair.unreported]
    return float(np.median(bases)) if bases else None


def error_of_look(experiment: Experiment, measured: Sequence[ExperimentPair]) -> float:
    """Several looks at one difference, at the whole, at single steps and at phases, share the risk."""
    return experiment.error / (1 + bool(experiment.phases_with_step) + looks_at_steps(experiment, measured))


def repeats_exactly(metric: Metric, undisturbed: Sequence[Values]) -> bool:
    """True where each side was counted more than once, with the same number each time."""
    counter = metric.kind == Metric.Kind.COUNTER and metric.is_counted
    return counter and len(undisturbed) >= FEWEST_EXACT and len(set(undisturbed)) == 1


def _exact_estimate(base: float, head: float) -> ExperimentResult:
    if min(base, head) > 0:
        return ExperimentResult(
            ratio=Interval(head / base, head / base, head / base), verdict=Verdict.ESTIMATED
        )
    moved = head - base
    return ExperimentResult(difference=Interval(moved, moved, moved), verdict=Verdict.ESTIMATED)


def scale_of(experiment: Experiment, undisturbed: Sequence[Values]) -> StepScale:
    """The suspected step as one unit; of an estimate, which suspects none, one that all values have."""
    values = [value for pair in undisturbed for value in pair]
    if experiment.question in WITHOUT_STEP:
        worse = 1 if experiment.metric.better == Metric.Better.LOWER else -1
        return StepScale.without_step(experiment.metric, worse, values)
    before, after = cast(float, experiment.before), cast(float, experiment.after)
    return StepScale.of_values(experiment.metric, before, after, values)


def estimate_head_share(scale: StepScale, undisturbed: Sequence[Values], error: float) -> pairs.ShareEstimate:
    """How many units the heads lie above their bases, with the interval that is valid at every look."""
    base = [scale.share_of_step(value) for value, _ in undisturbed]
    head = [scale.share_of_step(value) for _, value in undisturbed]
    # What slows a repetition doesn't make it learn less: no value of a quality is taken for an accident.
    slowed = not scale.metric.is_quality
    return pairs.estimate_share(base, head, scale.noise, error, slowed=slowed)


def evaluate_ratios(
    experiment: Experiment,
    undisturbed: Sequence[Values],
    typical: Sequence[Values] | None = None,
    base_first: Sequence[bool] = (),
) -> Interval:
    """Head / base of what was read from an experiment's pairs beside its metric, by the metric's own rules.

    The values are positive, and better where they are lower as the metric's are. `typical`: those of typical
    steps of the same pairs, none where they don't tell, and `base_first` the order of each, where sides took
    turns; what tells more is reported, and both share the error.
    """
    if len(undisturbed) < pairs.FEWEST_PAIRS:
        return Interval()
    scale, error = scale_of(experiment, undisturbed), experiment.error / (1 if typical is None else 2)
    estimate = estimate_head_share(scale, undisturbed, error)
    if typical:
        ratios = np.log([head / base for base, head in typical])
        steps = estimate_by_steps(ComparedSteps(ratios, 0.0, 0.0), base_first, scale.step, LEAST_NOISE, error)
        estimate = agreed_estimate(estimate, steps, error, math.inf)
    return _interval_of(estimate, scale)


def _interval_of(share: pairs.ShareEstimate, scale: StepScale) -> Interval:
    """In ratios or differences, the smaller end first."""
    middle = scale.effect_of(share.share)
    if share.low is None or share.high is None:
        return Interval(middle)
    return Interval(middle, *sorted((scale.effect_of(share.low), scale.effect_of(share.high))))


def as_verdict(found: pairs.StepVerdict | pairs.PlaceVerdict) -> str:
    """As an experiment keeps it; empty while it is open."""
    return "" if found == OPEN else Verdict(found).value


def _step_verdict(experiment: Experiment, found: StepEstimates, spent: float) -> tuple[str, dict[str, Any]]:
    """Of a test or a place, with the reason where it isn't clear."""
    test = experiment.question == Question.TEST
    verdict, reason = _test_verdict(experiment, found) if test else _place_verdict(found, spent)
    if verdict:
        return verdict, reason
    if spent >= 1:
        return Verdict.UNDECIDED, {"code": "both answers possible"}
    estimate = found.narrower
    if test and not found.phases and estimate.pairs >= FEWEST_PAIRS_OF_HOPELESS:
        most, least = int(estimate.pairs / spent), least_share(experiment, found.scale)
        if pairs.chance_to_decide(estimate, most, least, found.error) < HOPELESS_CHANCE:
            return Verdict.UNDECIDED, {"code": "too noisy", "most": most}
    return "", {}


def _test_verdict(experiment: Experiment, found: StepEstimates) -> tuple[str, dict[str, Any]]:
    """Whether the step is there; with what phases have said, where that differs from the whole by itself."""
    least, parts = least_share(experiment, found.scale), found.phases.found if found.phases else None
    whole = decide_step(found.means, found.steps, None, least, found.error)
    decided = decide_step(found.means, found.steps, parts, least, found.error)
    if decided == "moved":
        return Verdict.REFUTED.value, {**found.phase_reason, "code": "work moved"}
    return as_verdict(decided), {} if decided == whole else found.phase_reason


def _place_verdict(found: StepEstimates, spent: float) -> tuple[str, dict[str, Any]]:
    """How much of the step the head has: whatever has it has it where it was seen."""
    weighed = found.phases.found.parts if found.phases else found.narrower
    verdict = as_verdict(pairs.place_verdict(weighed, spent))
    if verdict and as_verdict(pairs.place_verdict(weighed)) != verdict:
        return verdict, {**found.phase_reason, "code": "budget spent", "sure": verdict}
    return verdict, found.phase_reason


def least_share(experiment: Experiment, scale: StepScale) -> float:
    """The smallest relevant part of the suspected step. What only phases show is relevant though small."""
    effect = EFFECT_FLOORS[cast(Kind, experiment.metric.kind)]
    floor = LEAST_OF_WHOLE if experiment.phases_with_step else effect.long
    if experiment.metric.is_quality:
        least = floor * scale.level
    elif scale.logarithmic:
        least = math.log1p(max(floor, effect.least / scale.before))
    else:
        least = effect.least
    return least / abs(scale.step)


def _estimate_verdict(
    experiment: Experiment, share: pairs.ShareEstimate, scale: StepScale, spent: float
) -> tuple[str, dict[str, Any]]:
    """It ends once it is precise enough; at the end of the budget with the interval that there is."""
    reached = reached_precision(share, scale)
    wanted = experiment.precision
    if reached is not None and wanted is not None and reached <= wanted:
        return Verdict.ESTIMATED, {}
    if reached is not None and reached <= USEFUL_PRECISION and settles_range(experiment, share, scale):
        return Verdict.ESTIMATED, {}
    if spent < 1:
        return "", {}
    if reached is None:
        return Verdict.UNDECIDED, {"code": "too few pairs", "calm": share.pairs}
    return Verdict.ESTIMATED, {
        "code": "precision not reached",
        "reached": reached,
        "wanted": wanted,
        "calm": share.pairs,
    }


def settles_range(experiment: Experiment, share: pairs.ShareEstimate, scale: StepScale) -> bool:
    """Whether the ratio surely lies within the experiment's range, or outside of it."""
    least, most = experiment.range_low, experiment.range_high
    ratio = _interval_of(share, scale) if scale.logarithmic else Interval()
    if ratio.low is None or ratio.high is None or (least is None and most is None):
        return False
    above_least, below_most = least is None or ratio.low >= least, most is None or ratio.high <= most
    below_all, above_all = least is not None and ratio.high < least, most is not None and ratio.low > most
    return (above_least and below_most) or below_all or above_all


def _bound_verdict(
    bounded: BoundedDifference | None, others: Sequence[BoundedDifference], spent: float
) -> tuple[str, dict[str, Any]]:
    """It ends once the metric's own bound is known, and what is learned had its chance to tell."""
    verdict = bounded.verdict if bounded else ""
    if verdict and (spent >= 1 or not waits_for_quality(others, bounded.pairs if bounded else 0)):
        return Verdict(verdict), {}
    return (Verdict.UNDECIDED, {"code": "both answers possible"}) if spent >= 1 else ("", {})


def bound_experiment(
    experiment: Experiment, measured: Sequence[ExperimentPair]
) -> tuple[BoundedDifference | None, list[BoundedDifference]]:
    """What it says of its metric, and of what else was measured and counted, by its floor."""
    undisturbed = [pair for pair in measured if not pair.disturbed]
    metric = experiment.metric
    own = MeasuredMetric(metric.name, metric.unit, metric.better, metric.kind)
    floor, values = experiment.floor or 0.0, [(pair.base, pair.head) for pair in undisturbed]
    error = error_of_look(experiment, measured)
    steps = evaluate_steps(experiment, measured, scale_of(experiment, values), error) if undisturbed else None
    bounded = bound_metric(own, values, floor, error, steps)
    others = bound_others([pair.others for pair in undisturbed], floor, experiment.error)
    counters = bound_counters(experiment.profiles, bounded)
    return bounded, [other for other in (*others, *counters) if other.metric.name != metric.name]


def reached_precision(share: pairs.ShareEstimate, scale: StepScale) -> float | None:
    """Half the interval's width: as a part of the ratio, or of the values' own size where they have no ratio.

    None while the interval has no ends.
    """
    if share.low is None or share.high is None:
        return None
    half = (share.high - share.low) / 2 * abs(scale.step)
    if scale.logarithmic:
        return math.expm1(min(half, FARTHEST))
    if half == 0:
        return 0.0
    # Where half of the values are 0 they have no size that a width could be a part of.
    return half / scale.level if scale.level else None


def place_step(
    experiment: Experiment, measured: Sequence[ExperimentPair], before: float, after: float
) -> str:
    """What pairs say of a head: has it the whole of this step, none, or a part; empty where they don't tell.

    The step may be another one than was suspected when they were measured. By single steps as well, where
    they tell of one so small and the means bear them out.
    """
    undisturbed = [(pair.base, pair.head) for pair in measured if not pair.disturbed]
    if len(undisturbed) < pairs.FEWEST_PAIRS:
        return ""
    asked = Experiment(
        question=Question.PLACE,
        metric=experiment.metric,
        phase=experiment.phase,
        before=before,
        after=after,
        error=experiment.error,
        # Pairs that kept nothing of their steps are described by their means, with all of the error.
        in_turns=experiment.in_turns and any(pair.step_ratio is not None for pair in measured),
    )
    scale, error = scale_of(asked, undisturbed), error_of_look(asked, measured)
    share = estimate_head_share(scale, undisturbed, error)
    estimate = agreed_estimate(share, evaluate_steps(asked, measured, scale, error), error, math.inf)
    return as_verdict(pairs.place_verdict(estimate))
