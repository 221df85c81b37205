"""Old detail is dropped with age, as settings and policies say: no level moves, and no change is lost."""

from dashboard.retention.expired_sessions import drop_expired_sessions, drop_old_deliveries
from dashboard.retention.forecast import forecast_project
from dashboard.retention.kept_days import KeptDays, kept_days
from dashboard.retention.protected_runs import Reason
from dashboard.retention.pruning import prune_runs

__all__ = [
    "KeptDays",
    "Reason",
    "drop_expired_sessions",
    "drop_old_deliveries",
    "forecast_project",
    "kept_days",
    "prune_runs",
]
