"""Interleaved, paired measurements of two sides on one machine: asked for, claimed, measured, weighed, ended.

Whoever asks reads the verdict: a regression's proof, a bisection, a person, a script. See
docs/experiments.md.
"""

from dashboard.experiments.asking import (
    DEFAULT_PRECISION,
    ExperimentError,
    Side,
    ask_estimate,
    ask_experiment,
    known_metric,
    newest_configuration,
)
from dashboard.experiments.assignment import ExperimentAssignment, PairMeasured, SideAssignment
from dashboard.experiments.lease import (
    add_pair,
    cancel_experiments,
    claim_experiment,
    conclude_experiment,
    heartbeat_experiment,
    keep_profiles,
    release_experiments,
    requeue_lost_experiments,
    sweep_experiments,
)

__all__ = [
    "DEFAULT_PRECISION",
    "ExperimentAssignment",
    "ExperimentError",
    "PairMeasured",
    "Side",
    "SideAssignment",
    "add_pair",
    "ask_estimate",
    "ask_experiment",
    "cancel_experiments",
    "claim_experiment",
    "conclude_experiment",
    "heartbeat_experiment",
    "keep_profiles",
    "known_metric",
    "newest_configuration",
    "release_experiments",
    "requeue_lost_experiments",
    "sweep_experiments",
]
