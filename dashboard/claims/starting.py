"""From measurements that wait to experiments: claims about the same two sides share one."""

from __future__ import annotations

import math
from collections.abc import Iterable

from paceline.claims.claim import Claim as ClaimText
from paceline.claims.claims_file import parse_definition
from paceline.claims.readings import better_direction, is_derived
from paceline.claims.verdicts import accepted_range

from dashboard.claims import sides
from dashboard.experiments import ExperimentDesign, Side, request_estimate
from dashboard.models import ClaimMeasurement, Experiment, Project

# An experiment needn't be more precise than what is claimed asks for, nor can it say much when less.
LEAST_PRECISION, MOST_PRECISION = 0.01, 0.1
# The interval of a ratio in the middle of what is claimed is to fill half of it at most.
PART_OF_RANGE = 0.25


def start_measurements(project: Project, measurements: Iterable[ClaimMeasurement]) -> list[Experiment]:
    """Ask for the experiments of measurements that have none, called within a transaction."""
    return [
        start_measurement(project, measurement)
        for measurement in measurements
        if measurement.experiment_id is None and measurement.base is not None
    ]


def start_measurement(project: Project, measurement: ClaimMeasurement) -> Experiment:
    """Ask for its experiment, or join the one that is under way for the same sides and metric."""
    claim = parse_definition(measurement.claim.definition)
    base, head = measurement.base, measurement.head
    if base is None:
        raise ValueError("a claim about one case has no experiment")
    found = sides.find_claim_metric(sides.experiment_spelling(claim.metric), base, head)
    if found is None:
        raise ValueError(f"{claim.metric} was known when it was asked for")
    metric, phase = found
    design = ExperimentDesign(
        purpose=Experiment.Purpose.CLAIM,
        base=Side(measurement.commit, base),
        head=Side(measurement.commit, head),
        metric=metric,
        phase=phase,
        precision=needed_precision(claim),
        minutes=measurement.minutes,
        requested_by=measurement.requested_by,
    )
    experiment, new = request_estimate(project, design)
    keep_range(experiment, ratio_range(claim), new=new)
    measurement.experiment = experiment
    measurement.save(update_fields=["experiment"])
    return experiment


def keep_range(experiment: Experiment, wanted: tuple[float | None, float | None], *, new: bool) -> None:
    """Let the experiment end once it settles the claim; one that others wait for too must be precise."""
    if new:
        experiment.range_low, experiment.range_high = wanted
    elif (experiment.range_low, experiment.range_high) != wanted:
        experiment.range_low = experiment.range_high = None
    else:
        return
    Experiment.objects.filter(pk=experiment.pk).update(
        range_low=experiment.range_low, range_high=experiment.range_high
    )


def ratio_range(claim: ClaimText) -> tuple[float | None, float | None]:
    """What agrees with the claim, as head / base of its metric; an open end is None.

    Of what is derived from the pairs' phases the experiment weighs something else: none.
    """
    accepted = accepted_range(claim)
    if accepted is None or is_derived(claim.metric):
        return None, None
    inverted = (claim.direction == "worse") != (better_direction(claim.metric) == "lower")
    ends = [accepted.low, accepted.high]
    if inverted:
        ends = [1 / end if end > 0 else math.inf for end in reversed(ends)]
    low, high = (end if math.isfinite(end) and end > 0 else None for end in ends)
    return low, high


def needed_precision(claim: ClaimText) -> float:
    """How precisely a ratio has to be known to tell whether it is what is claimed."""
    accepted = accepted_range(claim)
    if accepted is None:
        return LEAST_PRECISION
    low, high = accepted.low, accepted.high
    if low > 0 and math.isfinite(high):
        room = high / low - 1
    else:
        edge = low if math.isfinite(low) else high
        room = abs(edge - 1)
    return min(max(PART_OF_RANGE * room, LEAST_PRECISION), MOST_PRECISION)
