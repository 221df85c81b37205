"""Histories that other tools measured, imported as runs of a project."""

from dashboard.imports.asv import read_asv
from dashboard.imports.bencher import read_bencher
from dashboard.imports.chrome_trace import read_chrome_trace
from dashboard.imports.commits import date_reader
from dashboard.imports.csv_file import read_csv
from dashboard.imports.google_benchmark import read_google_benchmark
from dashboard.imports.lightning import read_lightning
from dashboard.imports.pytest_benchmark import read_pytest_benchmark
from dashboard.imports.results import (
    ImportedResults,
    ImportedRun,
    ImportOrigin,
    ImportRefused,
)
from dashboard.imports.storing import ImportSummary, import_runs
from dashboard.imports.torchbench import read_torchbench

__all__ = [
    "ImportOrigin",
    "ImportRefused",
    "ImportSummary",
    "ImportedResults",
    "ImportedRun",
    "date_reader",
    "import_runs",
    "read_asv",
    "read_bencher",
    "read_chrome_trace",
    "read_csv",
    "read_google_benchmark",
    "read_lightning",
    "read_pytest_benchmark",
    "read_torchbench",
]
