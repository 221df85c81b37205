"""Bencher Metric Format: by benchmark and measure a value, and maybe its bounds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dashboard.imports import units
from dashboard.imports.json_file import JsonPlace, ReportProgress, locate_commit, read_json_files
from dashboard.imports.results import (
    ImportedMetric,
    ImportedResults,
    ImportedRun,
    ImportedValue,
    ImportOrigin,
    printable_text,
    shorten_text,
)
from dashboard.name_lengths import LONGEST_BENCHMARK

LONGEST_MEASURE = 60
# Bencher's own measures with their units, as its documentation has them.
MEASURES: dict[str, tuple[str, str]] = {
    "throughput": ("operations/s", "higher"),
    "build-time": ("s", "lower"),
    "file-size": ("bytes", "lower"),
    "instructions": ("1", "lower"),
}
NANOSECOND = 1e-9


def read_bencher(path: Path, origin: ImportOrigin, report_progress: ReportProgress = None) -> ImportedResults:
    """A file, or all of a folder, of the commit that `origin` names; raises ImportRefused."""
    results = ImportedResults()
    for place in read_json_files(path, report_progress):
        commit, date = locate_commit(origin, place.file)
        for name, measures in place.members():
            benchmark = printable_text(name, LONGEST_BENCHMARK)
            values = tuple(_read_measures(measures))
            if not values:
                raise measures.refuse("has no measure")
            results.runs.append(ImportedRun(commit, date, benchmark, {}, origin.pool or "imported", values))
    return results


def _read_measures(measures: JsonPlace) -> Iterator[ImportedValue]:
    for name, measure in measures.members():
        metric, factor = _metric_of_measure(name)
        low, high = measure.find("lower_value"), measure.find("upper_value")
        yield ImportedValue(
            metric,
            measure.member("value").read_number() * factor,
            low.read_number() * factor if low else None,
            high.read_number() * factor if high else None,
        )


def _metric_of_measure(name: str) -> tuple[ImportedMetric, float]:
    if name == "latency":
        return units.standard_metric("step_time"), NANOSECOND
    unit, better = MEASURES.get(name, ("1", "lower"))
    plain = shorten_text(name if name.isprintable() else ascii(name), LONGEST_MEASURE)
    return units.reported_metric(plain.replace("-", "_"), unit, better), 1.0
