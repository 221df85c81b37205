"""From a run's document to rows: one transaction, idempotent, the raw document kept."""

from dashboard.ingest.document_validation import BadDocument
from dashboard.ingest.storing import store_document

__all__ = ["BadDocument", "store_document"]
