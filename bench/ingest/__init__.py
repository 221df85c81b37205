"""How fast runs come in through the whole way: handed in by HTTP, stored, judged by the site's workers."""

from bench.ingest.table import measure_ingest

__all__ = ["measure_ingest"]
