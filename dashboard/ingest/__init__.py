"""From a run's document to rows: one transaction, idempotent, the raw document kept."""

from dashboard.ingest.checks import BadDocument
from dashboard.ingest.storing import store

__all__ = ["BadDocument", "store"]
