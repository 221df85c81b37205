"""Claims of what optimizations are worth: read from claims.toml, measured by experiments, judged, watched.

The harness's own parser and verdict decide; this package asks, waits and remembers. It knows nothing of
regressions. See docs/claims.md.
"""

from dashboard.claims.errors import ClaimsError
from dashboard.claims.judging import experiment_ended
from dashboard.claims.requests import RequestedClaims, request_claims, run_stored
from dashboard.claims.standing import history_rewritten
from dashboard.claims.watching import read_new_claims, sweep_claims, watch_claims

__all__ = [
    "ClaimsError",
    "RequestedClaims",
    "experiment_ended",
    "history_rewritten",
    "read_new_claims",
    "request_claims",
    "run_stored",
    "sweep_claims",
    "watch_claims",
]
