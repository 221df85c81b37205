"""Interleaved, paired measurements of two sides on one machine: asked for, claimed, measured, judged, ended.

Whoever asks reads the verdict: a regression's proof, a bisection, a person, a script. See
docs/experiments.md.
"""

from dashboard.experiments.counted_sides import largest_growth
from dashboard.experiments.errors import ExperimentError
from dashboard.experiments.estimate_request import EstimateRequest
from dashboard.experiments.requests import (
    DEFAULT_METRIC,
    DEFAULT_PRECISION,
    ESTIMATE_PAIRS,
    MOST_MINUTES,
    ExperimentDesign,
    Side,
    request_estimate,
    request_experiment,
)
from dashboard.experiments.reuse import (
    SuspectedStep,
    evaluate_suspected_step,
    is_outdated,
    reuse_experiment,
)
from dashboard.experiments.submission import submit_estimate
from dashboard.experiments.transitions import (
    add_pair,
    cancel_experiments,
    claim_experiment,
    conclude_experiment,
    heartbeat_experiment,
    keep_profiles,
    release_experiments,
    requeue_held_experiments,
    requeue_lost_experiments,
    sweep_experiments,
)
from dashboard.experiments.verdicts import bound_experiment, place_step

__all__ = [
    "DEFAULT_METRIC",
    "DEFAULT_PRECISION",
    "ESTIMATE_PAIRS",
    "MOST_MINUTES",
    "EstimateRequest",
    "ExperimentDesign",
    "ExperimentError",
    "Side",
    "SuspectedStep",
    "add_pair",
    "bound_experiment",
    "cancel_experiments",
    "claim_experiment",
    "conclude_experiment",
    "evaluate_suspected_step",
    "heartbeat_experiment",
    "is_outdated",
    "keep_profiles",
    "largest_growth",
    "place_step",
    "release_experiments",
    "request_estimate",
    "request_experiment",
    "requeue_held_experiments",
    "requeue_lost_experiments",
    "reuse_experiment",
    "submit_estimate",
    "sweep_experiments",
]
