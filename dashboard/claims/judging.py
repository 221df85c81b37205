"""From what was measured to the verdict on a claim, and to how the claim stands along the branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.utils import timezone
from paceline.claims.claim import Claim as ClaimText
from paceline.claims.claim import Estimate
from paceline.claims.claims_file import parse_definition
from paceline.claims.readings import better_direction, is_derived, read_metric, reading_unit
from paceline.claims.verdicts import NOT_KNOWN, invert_ratio, judge_estimate
from paceline.statistics import median, median_interval

from dashboard.claims.sides import metric_names
from dashboard.claims.standing import update_standing
from dashboard.detection import pairs
from dashboard.experiments.phase_steps import time_in_phase
from dashboard.experiments.verdicts import evaluate_ratios
from dashboard.models import Claim, ClaimMeasurement, Experiment, ExperimentPair, Point

State = ClaimMeasurement.State
# Of so few repetitions a range says nothing.
FEWEST_REPETITIONS = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """What a measurement says: an estimate with what it rests on, or the reason why there is none."""

    estimate: Estimate | None
    evidence: dict[str, Any] = field(default_factory=dict)
    reason: dict[str, Any] = field(default_factory=dict)
    unit: str = ""


def experiment_ended(experiment_id: int) -> None:
    """Settle the claims that waited for this experiment, once it has ended. Safe to repeat."""
    experiment = Experiment.objects.select_related("metric").filter(pk=experiment_id).first()
    if experiment is None or experiment.state not in Experiment.TERMINAL:
        return
    waiting = ClaimMeasurement.objects.filter(experiment=experiment, state=State.REQUESTED)
    for key in waiting.order_by("pk").values_list("pk", flat=True):
        with transaction.atomic():
            rows = ClaimMeasurement.objects.select_for_update(of=("self",)).select_related("claim__project")
            measurement = rows.filter(pk=key, state=State.REQUESTED).first()
            if measurement is not None:
                judge_by_experiment(measurement, experiment)


def judge_by_experiment(measurement: ClaimMeasurement, experiment: Experiment) -> None:
    claim = measurement.claim
    if experiment.state == Experiment.State.CANCELLED or measurement.digest != claim.digest:
        measurement.state, measurement.reason = State.CANCELLED, dict(experiment.reason)
        measurement.measured_at = timezone.now()
        measurement.save(update_fields=["state", "reason", "measured_at"])
        return
    text = parse_definition(claim.definition)
    store_finding(measurement, text, find_by_pairs(text, experiment))


def judge_by_run(measurement: ClaimMeasurement, claim: ClaimText) -> None:
    """Judge a claim about one case by the measurement's run, called within a transaction."""
    store_finding(measurement, claim, find_by_points(claim, measurement))


def store_finding(measurement: ClaimMeasurement, claim: ClaimText, found: Finding) -> None:
    """Write the figures and the verdict, and let the claim stand by them."""
    estimate = found.estimate
    measurement.state, measurement.measured_at = State.DONE, timezone.now()
    measurement.evidence, measurement.reason, measurement.unit = found.evidence, found.reason, found.unit
    measurement.verdict = NOT_KNOWN
    if estimate is not None:
        measurement.value, measurement.low, measurement.high = estimate.value, estimate.low, estimate.high
        measurement.verdict = judge_estimate(claim, estimate)
    measurement.save()
    update_standing(Claim.objects.select_for_update(of=("self",)).get(pk=measurement.claim_id), measurement)


def find_by_pairs(claim: ClaimText, experiment: Experiment) -> Finding:
    """How many times better `after` is, by an experiment that has ended."""
    measured = list(experiment.pairs.all())
    undisturbed = [pair for pair in measured if not pair.disturbed]
    evidence = {"kind": "pairs", "samples": len(undisturbed), "disturbed": len(measured) - len(undisturbed)}
    if experiment.verdict == Experiment.Verdict.UNTESTABLE or not undisturbed:
        return Finding(None, evidence, dict(experiment.reason) or {"code": "too few pairs"})
    ratio = (
        derived_ratio(claim, experiment, undisturbed) if is_derived(claim.metric) else own_ratio(experiment)
    )
    if ratio is None:
        code = "no ratio" if len(undisturbed) >= pairs.FEWEST_PAIRS else "too few pairs"
        return Finding(None, evidence, dict(experiment.reason) or {"code": code})
    better = ratio if better_direction(claim.metric) == "higher" else invert_ratio(ratio)
    return Finding(better, evidence, dict(experiment.reason), "x")


def own_ratio(experiment: Experiment) -> Estimate | None:
    """Head / base with its interval, as the experiment weighed it."""
    if experiment.ratio is None or experiment.low is None or experiment.high is None:
        return None
    return Estimate(experiment.ratio, experiment.low, experiment.high)


def derived_ratio(
    claim: ClaimText, experiment: Experiment, undisturbed: Sequence[ExperimentPair]
) -> Estimate | None:
    """Head / base of a sum or a share of phases, read from each pair and weighed as any metric.

    Where sides took turns by typical steps too.
    """
    values = [read_pair(claim.metric, (pair.base, pair.head), pair.phases) for pair in undisturbed]
    means = [value for value in values if value is not None]
    if len(means) < len(undisturbed):
        return None
    found = evaluate_ratios(
        experiment, means, typical_values(claim, undisturbed), [pair.base_first for pair in undisturbed]
    )
    if found.value is None or found.low is None or found.high is None:
        return None
    return Estimate(found.value, found.low, found.high)


def typical_values(
    claim: ClaimText, undisturbed: Sequence[ExperimentPair]
) -> Sequence[tuple[float, float]] | None:
    """The claim's metric of both sides, by what phases take in typical steps of each pair.

    None where sides took no turns; none at all where a pair doesn't have it.
    """
    if not undisturbed[0].typical_phases:
        return None
    values = [
        read_pair(claim.metric, typical_step(pair.typical_phases), pair.typical_phases)
        for pair in undisturbed
    ]
    known = [value for value in values if value is not None]
    return known if len(known) == len(undisturbed) else ()


def read_pair(
    spelling: str, steps: tuple[float, float], phases: Mapping[str, Sequence[float]]
) -> tuple[float, float] | None:
    """A metric as claims spell it, of both sides of a pair; None where one hasn't got it.

    By their step times, and the own times of their phases.
    """

    def read_side(side: int) -> float | None:
        def find_value(name: str, phase: str | None) -> float | None:
            if name == "step_time" and phase is None:
                return steps[side]
            if name != "phase_time" or phase is None:
                return None
            return time_in_phase(phases, phase, side)

        return read_metric(spelling, find_value)

    base, head = read_side(0), read_side(1)
    return (base, head) if base is not None and head is not None and min(base, head) > 0 else None


def typical_step(phases: Mapping[str, Sequence[float]]) -> tuple[float, float]:
    """What all phases of a pair take together in a typical step, of both sides."""
    base, head = (sum(times[side] for times in phases.values()) for side in (0, 1))
    return base, head


def find_by_points(claim: ClaimText, measurement: ClaimMeasurement) -> Finding:
    """The case's value by the repetitions of its run."""
    points = Point.objects.filter(run=measurement.run).select_related("series__metric")
    names = metric_names(claim.metric)
    samples = {
        (point.series.metric.name, point.series.phase or None): point.samples or [point.value]
        for point in points.filter(series__metric__name__in=names)
    }
    exact = {point.series.metric.name: point.series.exact for point in points.filter(series__phase="")}
    repetitions = max((len(values) for values in samples.values()), default=0)
    readings = [read_repetition(claim.metric, samples, index) for index in range(repetitions)]
    values = [claim.factor * reading for reading in readings if reading is not None]
    if not values or len(values) < len(readings):
        return Finding(None, reason={"code": "not measured", "metric": claim.metric})
    is_exact = all(exact.get(name, False) for name in names)
    kind = "counted" if is_exact else "repetitions"
    evidence = {"kind": kind, "samples": len(values), "disturbed": 0}
    unit = claim.unit or reading_unit(claim.metric)
    bounds = median_interval(values) if len(values) >= FEWEST_REPETITIONS else None
    middle = median(values)
    if is_exact and len(set(values)) == 1:
        bounds = middle, middle
    if bounds is None:
        reason = {"code": "too few repetitions", "value": middle, "unit": unit}
        return Finding(None, evidence, reason, unit)
    return Finding(Estimate(middle, *bounds), evidence, unit=unit)


def read_repetition(
    spelling: str, samples: dict[tuple[str, str | None], list[float]], index: int
) -> float | None:
    """One repetition's value; what was counted once is the same for all of them."""

    def find_value(name: str, phase: str | None) -> float | None:
        found = samples.get((name, phase))
        if not found:
            return None
        return found[index] if len(found) > 1 and index < len(found) else found[0]

    return read_metric(spelling, find_value)
