"""Histories that other tools measured, brought in as runs of a project."""

from dashboard.imports.asv import read as read_asv
from dashboard.imports.readings import ImportRefused, Measured, Metric, Results, Value
from dashboard.imports.storing import Stored, bring_in
from dashboard.imports.table import read as read_csv

__all__ = [
    "ImportRefused",
    "Measured",
    "Metric",
    "Results",
    "Stored",
    "Value",
    "bring_in",
    "read_asv",
    "read_csv",
]
