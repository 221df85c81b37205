"""Interleaved runs of two commits: requested, claimed, measured pair by pair, weighed, concluded."""

from dashboard.regressions.confirmations.assignment import ConfirmationAssignment, PairMeasured
from dashboard.regressions.confirmations.transitions import (
    add_pair,
    cancel,
    claim,
    conclude,
    heartbeat,
    release,
    requeue_lost,
)
from dashboard.regressions.confirmations.weighing import place

__all__ = [
    "ConfirmationAssignment",
    "PairMeasured",
    "add_pair",
    "cancel",
    "claim",
    "conclude",
    "heartbeat",
    "place",
    "release",
    "requeue_lost",
]
