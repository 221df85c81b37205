"""What an experiment's pairs say by their single steps, where both sides took turns.

The steps of all pairs are thousands and go with the verdict; each pair keeps what its steps have said. So
whatever reads the pairs later weighs the numbers of the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dashboard.detection.paired_steps import LARGEST_STEP, ComparedSteps, compare_steps, estimate_by_steps
from dashboard.detection.pairs import ShareEstimate
from dashboard.experiments.phase_steps import time_in_phase
from dashboard.experiments.scale import StepScale
from dashboard.metric_scale import LEAST_NOISE
from dashboard.models import Experiment, ExperimentPair

Question = Experiment.Question

# What a step's time is in them, by the power of its ratio.
METRICS = {"step_time": 1, "throughput": -1}
# What a phase's time in them is: with those nested in it, and without.
PHASE_METRICS = ("phase_time", "phase_self_time")
# No step is suspected.
WITHOUT_STEP = (Question.ESTIMATE, Question.BOUND)
# The largest difference that steps tell, as a logarithm; of a phase they tell any. Other work that meets a
# step meets few of its phases.
LARGEST_LOG_STEP = math.log1p(LARGEST_STEP)
# What a pair keeps of its steps.
RATIOS = ("step_ratio", "kinds_ratio", "kinds_error")


def can_evaluate_steps(experiment: Experiment) -> bool:
    """Whether its sides' steps take turns, and the step that is suspected, if any, is a small one."""
    if not experiment.in_turns or experiment.metric.name not in (
        PHASE_METRICS if experiment.phase else METRICS
    ):
        return False
    return experiment.question in WITHOUT_STEP or 0 < abs(suspected_step(experiment)) <= LARGEST_LOG_STEP


def suspected_step(experiment: Experiment) -> float:
    """The logarithm of the ratio of times, after to before; 0 where they have none."""
    before, after = experiment.before or 0.0, experiment.after or 0.0
    if min(before, after) <= 0:
        return 0.0
    return power_of_time(experiment) * math.log(after / before)


def power_of_time(experiment: Experiment) -> int:
    """By which a step's or a phase's time is in the metric that is weighed."""
    return METRICS.get(experiment.metric.name, 1)


def largest_step_effect(experiment: Experiment) -> float:
    """The largest difference that nobody suspected and steps tell, as a logarithm."""
    return math.inf if experiment.phase else LARGEST_LOG_STEP


def looks_at_steps(experiment: Experiment, measured: Sequence[ExperimentPair]) -> bool:
    """Whether steps are weighed beside the means, so that both share what may be risked.

    Known before there is a second pair, and never changed by a later one. Where no step is suspected, pairs
    of before steps were compared tell by their means alone, with all of the error.
    """
    if experiment.by_means_alone or not can_evaluate_steps(experiment):
        return False
    return experiment.question not in WITHOUT_STEP or (bool(measured) and measured[0].step_ratio is not None)


def compare_newest(newest: ExperimentPair, before: Sequence[ExperimentPair]) -> None:
    """Set what the newest pair keeps of its steps, beside the undisturbed ones `before` it.

    Nothing where it has too few of them, or others than those pairs.
    """
    taken = [newest] if newest.disturbed else [*before, newest]
    counts = {len(pair.steps.get("base", ())) for pair in taken}
    if len(counts) != 1 or 0 in counts:
        return
    base, head = (np.array([pair.steps[side] for pair in taken]).T for side in ("base", "head"))
    if compared := compare_steps(base, head):
        newest.step_ratio = math.exp(compared.typical[-1])
        newest.kinds_ratio, newest.kinds_error = math.exp(compared.kinds), compared.kinds_error


def compare_phase(experiment: Experiment, newest: ExperimentPair) -> None:
    """Set what the newest pair keeps of its steps where a phase is weighed: of what it takes in typical ones.

    Nothing where a side hasn't the phase in those.
    """
    nested = experiment.metric.name != "phase_self_time"
    base, head = (
        time_in_phase(newest.typical_phases, experiment.phase, side, nested=nested) for side in (0, 1)
    )
    if base is not None and head is not None and min(base, head) > 0:
        # Kinds of steps are in it.
        newest.step_ratio, newest.kinds_ratio, newest.kinds_error = head / base, 1.0, 0.0


def evaluate_steps(
    experiment: Experiment, measured: Sequence[ExperimentPair], scale: StepScale, error: float
) -> ShareEstimate | None:
    """By the undisturbed pairs, in units of the scale; None where they don't tell."""
    undisturbed = [pair for pair in measured if not pair.disturbed]
    if not undisturbed or not scale.logarithmic or not looks_at_steps(experiment, measured):
        return None
    ratios = [pair.step_ratio for pair in undisturbed if pair.step_ratio is not None]
    kinds, kinds_error = undisturbed[-1].kinds_ratio, undisturbed[-1].kinds_error
    if len(ratios) < len(undisturbed) or kinds is None or kinds_error is None:
        return None
    compared = ComparedSteps(np.log(ratios), math.log(kinds), kinds_error)
    order = [pair.base_first for pair in undisturbed]
    step = power_of_time(experiment) * scale.step
    return estimate_by_steps(compared, order, step, LEAST_NOISE, error)
