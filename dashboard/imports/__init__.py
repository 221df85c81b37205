"""Histories that other tools measured, imported as runs of a project."""

from dashboard.imports.asv import read_asv
from dashboard.imports.csv_file import read_csv
from dashboard.imports.results import (
    ImportedMetric,
    ImportedResults,
    ImportedRun,
    ImportedValue,
    ImportRefused,
)
from dashboard.imports.storing import ImportSummary, import_runs

__all__ = [
    "ImportRefused",
    "ImportSummary",
    "ImportedMetric",
    "ImportedResults",
    "ImportedRun",
    "ImportedValue",
    "import_runs",
    "read_asv",
    "read_csv",
]
