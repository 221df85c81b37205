"""Pairs of a quality: each has a seed of its own, and what a side doesn't report counts as lost.

A suspicion came up with the benchmark's own seeds. If these were measured again, the bad luck that raised it
would be measured again too: pairs have other seeds, the same for both sides, so that innocent commits differ
as often for the better as for the worse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from dashboard.experiments.bounds import MeasuredMetric, bound_metric
from dashboard.host_protocol import PairMeasured
from dashboard.host_protocol.messages import PACE
from dashboard.models import Experiment, ExperimentPair

Unreported = ExperimentPair.Unreported
# What has no more decimals than these may be a share of few tries.
FEW_DIGITS = 4


def can_evaluate_unreported(experiment: Experiment) -> bool:
    """Whether what a side doesn't report counts as something: as the suspected step, where there is one."""
    return experiment.metric.is_quality and experiment.after is not None


def pair_columns(experiment: Experiment, pair: PairMeasured) -> dict[str, Any]:
    """A pair as its row. A quality that is missing or no number counts as the suspected step, on either side.

    By one value for both sides the heads differ from their bases as often either way as before, where
    nothing has changed.
    """
    values = asdict(pair)
    if pair.unreported:
        values |= {side: experiment.after for side in ("base", "head") if values[side] is None}
        values["unreported"] = Unreported(pair.unreported)
    if experiment.metric.is_quality and pair.seed is None:
        # A host of an earlier release measures all pairs with one seed: they tell of its luck alone.
        values["disturbed"] = True
    return values


def lost_sides(pair: ExperimentPair) -> tuple[str, ...]:
    """The sides of a pair that reported no quality, whose value is that of the suspected step."""
    if pair.unreported == Unreported.BOTH:
        return "base", "head"
    return (pair.unreported,) if pair.unreported else ()


def evaluate_learning(experiment: Experiment, measured: Sequence[ExperimentPair]) -> dict[str, Any]:
    """Over how many seeds a quality was weighed, and what became of the step's time in the same pairs."""
    if not experiment.metric.is_quality:
        return {}
    undisturbed = [pair for pair in measured if not pair.disturbed]
    lost = sum(pair.unreported in (Unreported.HEAD, Unreported.BOTH) for pair in undisturbed)
    times = [pair.others[PACE] for pair in undisturbed if PACE in pair.others]
    metric = MeasuredMetric(PACE, "s", "lower", "time")
    bounded = bound_metric(metric, [(time["base"], time["head"]) for time in times], 0.0, experiment.error)
    learning: dict[str, Any] = {"seeds": len(undisturbed), "unreported": lost}
    if ignores_seeds(undisturbed):
        learning |= {"seeds": 1, "seed_ignored": True}
    if bounded is not None and bounded.logarithmic:
        ends = [None if end is None else math.exp(end) for end in (bounded.low, bounded.high)]
        learning["step_time"] = {"ratio": math.exp(bounded.middle), "low": ends[0], "high": ends[1]}
    return learning


def ignores_seeds(pairs: Sequence[ExperimentPair]) -> bool:
    """Whether the pairs, each with a seed of its own, have the same values to the last digit.

    Then the script takes no seed, and they are one seed's. Values such as 1 and 0.5, of which there are few,
    may well be those of all seeds.
    """
    values = {(pair.base, pair.head) for pair in pairs}
    if len(pairs) < 2 or len(values) != 1 or any(pair.unreported for pair in pairs):
        return False
    (only_pair,) = values
    return any(value != round(value, FEW_DIGITS) for value in only_pair if value is not None)
