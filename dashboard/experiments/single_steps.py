"""A small step that is suspected: what an experiment's pairs say of it by their single steps."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dashboard.detection.paired_steps import LARGEST_STEP, estimate_by_steps
from dashboard.detection.pairs import ShareEstimate
from dashboard.experiments.scale import LEAST_NOISE
from dashboard.models import Experiment, ExperimentPair

# What a step's time is in them, by the power of its ratio.
METRICS = {"step_time": 1, "throughput": -1}


def can_weigh_steps(experiment: Experiment) -> bool:
    """Whether its sides' steps take turns and the step that is suspected is a small one of their time."""
    if not experiment.in_turns or experiment.question not in (
        Experiment.Question.TEST,
        Experiment.Question.PLACE,
    ):
        return False
    if experiment.metric.name not in METRICS or experiment.phase:
        return False
    return 0 < abs(suspected_step(experiment)) <= math.log1p(LARGEST_STEP)


def suspected_step(experiment: Experiment) -> float:
    """The logarithm of the ratio of times, after to before; 0 where they have none."""
    before, after = experiment.before or 0.0, experiment.after or 0.0
    if min(before, after) <= 0:
        return 0.0
    return METRICS[experiment.metric.name] * math.log(after / before)


def weigh_steps(experiment: Experiment, calm: Sequence[ExperimentPair], error: float) -> ShareEstimate | None:
    """The share of the step, as `weigh_experiment` has it; None where pairs don't tell."""
    counts = {len(pair.steps.get("base", ())) for pair in calm}
    if not can_weigh_steps(experiment) or len(counts) != 1 or 0 in counts:
        return None
    base, head = (np.array([pair.steps[side] for pair in calm]).T for side in ("base", "head"))
    order = [pair.base_first for pair in calm]
    return estimate_by_steps(base, head, order, suspected_step(experiment), LEAST_NOISE, error)
