"""Points -> changes -> a snapshot -> decisions -> rows and experiments. See docs/method/regressions.md."""

from dashboard.regressions.checked_causes import explain_checked_case
from dashboard.regressions.judging import (
    advance_proof,
    experiment_ended,
    judge_run,
    run_ended,
    sweep_proofs,
)
from dashboard.regressions.redetection import history_rewritten, redetect_project
from dashboard.regressions.triage import TriageError, triage_regression

__all__ = [
    "TriageError",
    "advance_proof",
    "experiment_ended",
    "explain_checked_case",
    "history_rewritten",
    "judge_run",
    "redetect_project",
    "run_ended",
    "sweep_proofs",
    "triage_regression",
]
