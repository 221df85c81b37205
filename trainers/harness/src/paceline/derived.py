"""What a run's document derives from its sweep and its rate: exponents, and the time of the full job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from . import metrics, projection, scaling
from .benchmarks import Benchmark

Raw = dict[str, Any]


def scaling_of(sweep: scaling.Sweep | None, points: Sequence[scaling.Point]) -> Raw | None:
    """Return the document's scaling, its exponents with their samples; None without a sweep."""
    if sweep is None:
        return None
    return {
        "parameter": sweep.parameter,
        "params": dict(sweep.params),
        "points": [asdict(point) for point in points],
        "exponents": scaling.exponents(points),
    }


def job_of(
    benchmark: Benchmark, repetitions: Sequence[Mapping[str, Any]], points: Sequence[scaling.Point]
) -> Raw | None:
    """Return the document's job with its samples, or None where it can't be projected."""
    if benchmark.job is None:
        return None
    return projection.project(benchmark.job, repetitions, benchmark.scaling, points)


def rows(swept: Raw | None, job: Raw | None) -> list[Raw]:
    """Return both as metrics."""
    found = (
        [_row(one["name"], one["phase"], one["value"], one) for one in swept["exponents"]] if swept else []
    )
    return [*found, _row("projected_time", None, job["seconds"], job)] if job else found


def members(swept: Raw | None, job: Raw | None) -> Raw:
    """Return both as members of the document; what isn't there is left out."""
    found: Raw = {}
    if swept is not None:
        found["scaling"] = {**swept, "exponents": [_without_samples(one) for one in swept["exponents"]]}
    if job is not None:
        found["job"] = _without_samples(job)
    return found


def _row(name: str, phase: str | None, value: float, of: Mapping[str, Any]) -> Raw:
    known = metrics.METRICS[name]
    return {
        "name": name,
        "unit": known.unit,
        "better": known.better,
        "kind": known.kind,
        "phase": phase,
        "exact": False,
        "value": value,
        "low": of["low"],
        "high": of["high"],
        "samples": of["samples"],
    }


def _without_samples(found: Mapping[str, Any]) -> Raw:
    return {name: value for name, value in found.items() if name != "samples"}
