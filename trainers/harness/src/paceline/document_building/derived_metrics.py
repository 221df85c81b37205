"""What a document derives from a run's sweep and rate: scaling exponents, and the time of the full job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from .. import metrics
from ..manifest import projection, scaling
from ..manifest.benchmarks import Benchmark

Raw = dict[str, Any]


def fit_scaling(sweep: scaling.Sweep | None, points: Sequence[scaling.SweepPoint]) -> Raw | None:
    """Return the document's scaling, its exponents with their samples; None without a sweep."""
    if sweep is None:
        return None
    return {
        "parameter": sweep.parameter,
        "params": dict(sweep.params),
        "points": [asdict(point) for point in points],
        "exponents": scaling.fit_exponents(points),
    }


def project_full_job(
    benchmark: Benchmark, repetitions: Sequence[Mapping[str, Any]], points: Sequence[scaling.SweepPoint]
) -> Raw | None:
    """Return the document's job with its samples, or None where it can't be projected."""
    if benchmark.job is None:
        return None
    return projection.project_job(benchmark.job, repetitions, benchmark.scaling, points)


def derived_rows(swept: Raw | None, job: Raw | None) -> list[Raw]:
    """Return both as metrics."""
    exponents = swept["exponents"] if swept else []
    rows = [_metric_row(row["name"], row["phase"], row["value"], row) for row in exponents]
    return [*rows, _metric_row("projected_time", None, job["seconds"], job)] if job else rows


def document_members(swept: Raw | None, job: Raw | None) -> Raw:
    """Return both as members of the document; what isn't there is left out."""
    members: Raw = {}
    if swept is not None:
        members["scaling"] = {**swept, "exponents": [_without_samples(row) for row in swept["exponents"]]}
    if job is not None:
        members["job"] = _without_samples(job)
    return members


def _metric_row(name: str, phase: str | None, value: float, estimate: Mapping[str, Any]) -> Raw:
    metric = metrics.METRICS[name]
    return {
        "name": name,
        "unit": metric.unit,
        "better": metric.better,
        "kind": metric.kind,
        "phase": phase,
        "exact": False,
        "value": value,
        "low": estimate["low"],
        "high": estimate["high"],
        "samples": estimate["samples"],
    }


def _without_samples(row: Mapping[str, Any]) -> Raw:
    return {name: value for name, value in row.items() if name != "samples"}
