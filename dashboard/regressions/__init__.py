"""Points -> changes -> regressions -> proofs, each with what explains it. See docs/regressions.md."""

from dashboard.regressions.confirmations import ConfirmationAssignment, PairMeasured, add_pair, conclude
from dashboard.regressions.confirmations import claim as claim_confirmation
from dashboard.regressions.confirmations import heartbeat as confirmation_lives
from dashboard.regressions.confirmations import release as release_confirmations
from dashboard.regressions.judging import Outcome, judge_run, prove, redetect
from dashboard.regressions.proving import sweep
from dashboard.regressions.sentinels import pin
from dashboard.regressions.sentinels import watch as watch_machines

__all__ = [
    "ConfirmationAssignment",
    "Outcome",
    "PairMeasured",
    "add_pair",
    "claim_confirmation",
    "conclude",
    "confirmation_lives",
    "judge_run",
    "pin",
    "prove",
    "redetect",
    "release_confirmations",
    "sweep",
    "watch_machines",
]
