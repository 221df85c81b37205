"""Which pages are cached, by the names of their addresses: one line has another page cached.

A page may stand here if all that it shows is in the database, in its address, or follows from who asks and
from the time, to the minute; and if asking for it changes nothing.
"""

from __future__ import annotations

CACHED_PAGES = frozenset(
    {
        "overview",
        "regressions",
        "regression",
        "machine",
        "machines",
        "deliveries",
        "project",
        "project-runs",
        "project-commits",
        "project-triggers",
        "commit",
        "project-regressions",
        "project-heatmap",
        "project-noise",
        "project-trust",
        "project-costs",
        "project-experiments",
        "project-claims",
        "benchmark-claims",
        "claim",
        "project-checks",
        "project-compare",
        "project-compare-csv",
        "project-compare-markdown",
        "project-feed",
        "project-trigger",
        "series",
        "series-part",
        "series-csv",
        "series-json",
        "run",
        "experiment",
        "check",
        "queue",
        "search",
    }
)
# Of the API, where they are read.
CACHED_CALLS = frozenset(
    {
        "api-projects",
        "api-project",
        "api-cases",
        "api-series-list",
        "api-series",
        "api-points",
        "api-changes",
        "api-commits",
        "api-commit",
        "api-comparison",
        "api-triggers",
        "api-trigger",
        "api-runs",
        "api-run",
        "api-run-processes",
        "api-experiments",
        "api-claims",
        "api-claim-measurements",
        "api-experiment",
        "api-pairs",
        "api-checks",
        "api-check",
        "api-regressions",
        "api-regression",
        "api-deliveries",
        "api-machines",
        "api-machine",
    }
)
CACHED = CACHED_PAGES | CACHED_CALLS
