"""The documents of the bench: as large as those that were measured, with as many series as it asks for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from paceline.metrics import describe_metric

from bench.history.values import STEP_SECONDS, WHOLE, SeriesKind, draw_samples

# Of a benchmark of ours on its case: its profile, its telemetry and its repetitions are of a usual size.
MEASURED = Path(__file__).resolve().parents[2] / "tests/golden/paceline.document-1-measured.json"
SERIES = 300
PHASES = 40

COUNTERS = {
    "tensor_operations": 96.0,
    "host_device_copies": 2.0,
    "copied_bytes": 8192.0,
    "synchronisations": 3.0,
    "scalar_reads": 3.0,
    "graph_breaks": 1.0,
    "recompilations": 1.0,
}
MEASURED_BY_PHASE = {
    "phase_self_time": STEP_SECONDS / PHASES,
    "phase_time": STEP_SECONDS / PHASES,
    "phase_memory": 4e6,
}
COUNTED_BY_PHASE = {
    "function_calls": 40.0,
    "tensor_operations": 12.0,
    "scalar_reads": 1.0,
    "tensors_allocated": 6.0,
    "allocated_bytes": 4096.0,
}


def case_kinds() -> list[SeriesKind]:
    """SERIES kinds in the proportions of what the harness measures: some of the whole, most by phase."""
    counters = [_kind_of(name, base) for name, base in COUNTERS.items()]
    return [*WHOLE, *counters, *islice(_kinds_by_phase(), SERIES - len(WHOLE) - len(counters))]


def _kinds_by_phase() -> Iterator[SeriesKind]:
    for number in range(PHASES):
        phase = f"{'rollout' if number % 3 == 0 else 'learn'}/part_{number:02}"
        for name, base in (MEASURED_BY_PHASE | COUNTED_BY_PHASE).items():
            yield _kind_of(name, base, phase)


def _kind_of(name: str, base: float, phase: str = "") -> SeriesKind:
    described = describe_metric(name)
    if described is None:
        raise ValueError(f"The harness measures no {name}.")
    exact = described.kind == "counter"
    return SeriesKind(
        name,
        described.unit,
        described.better,
        described.kind,
        base,
        noise=0.0 if exact else 0.02,
        phase=phase,
        exact=exact,
        power=1.0 if described.kind == "time" else 0.0,
    )


def draw_documents(
    case: Any, kinds: Sequence[SeriesKind], factors: np.ndarray, noise: np.random.Generator
) -> list[bytes]:
    """One for each of `factors` (n,): how many times as long as at first the case takes."""
    pattern = json.loads(MEASURED.read_bytes())
    body = {
        **pattern,
        "benchmark": {"name": case.benchmark, "version": 1, "params": case.params, "case": case.key},
        "protocol": {**pattern["protocol"], "quick": False},
        "warnings": [],
    }
    undisturbed = np.zeros(len(factors), dtype=bool)
    samples = np.stack([draw_samples(kind, factors, undisturbed, noise) for kind in kinds], axis=1)
    return [
        json.dumps({**body, "metrics": list(map(_metric_row, kinds, values.tolist()))}).encode()
        for values in samples
    ]


def _metric_row(kind: SeriesKind, samples: Sequence[float]) -> dict[str, Any]:
    ordered = sorted(samples)
    return {
        "name": kind.name,
        "unit": kind.unit,
        "better": kind.better,
        "kind": kind.kind,
        "phase": kind.phase or None,
        "exact": kind.exact,
        "headline": kind.headline,
        "value": ordered[len(ordered) // 2],
        "low": None if kind.exact else ordered[0],
        "high": None if kind.exact else ordered[-1],
        "samples": samples[:2] if kind.exact else samples,
    }
