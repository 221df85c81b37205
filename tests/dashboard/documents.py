"""Documents as the harness writes them, of any number of metrics."""

from __future__ import annotations

import json
from typing import Any

from paceline import metrics

REPETITION = {
    "steps": 100,
    "seconds": 1.0,
    "startup_seconds": 0.5,
    "warmup_seconds": 0.1,
    "throughput": 100.0,
    "step_time": {"mean": 0.01, "p50": 0.01, "p90": 0.011, "p99": 0.012},
    "step_times": {
        "histogram": {"edges": [0.009, 0.01, 0.02], "counts": [40, 60]},
        "thinned": {"every": 10, "values": [0.01] * 10},
    },
    "warmup_times": None,
    "peak_memory": 1e8,
    "device_memory": None,
    "memory_growth": 0.0,
    "memory_growth_interval": None,
    "calibration_before": 0.01,
    "calibration_after": 0.01,
    "quality": {},
    "gauges": {},
    "counts": {},
    "window": {"start": 0.6, "end": 1.6},
    "waited": 0.0,
}


def metric_row(name: str, value: float, phase: str | None = None, **changes: Any) -> dict[str, Any]:
    described = metrics.describe_metric(name)
    assert described is not None
    return {
        "name": name,
        "unit": described.unit,
        "better": described.better,
        "kind": described.kind,
        "phase": phase,
        "exact": False,
        "headline": False,
        "value": value,
        "low": None,
        "high": None,
        "samples": [value] * 3,
        **changes,
    }


def telemetry_row(repetition: int, channel: str, values: list[float | None]) -> dict[str, Any]:
    return {
        "repetition": repetition,
        "channel": channel,
        "device": None,
        "unit": "%",
        "start": 0.0,
        "interval": 0.1,
        "values": values,
        "mean": 50.0,
        "peak": 90.0,
        "idle_share": None,
    }


def document_body(*, throughput: float = 100.0, **changes: Any) -> dict[str, Any]:
    """A document of `tiny[size=1]`; `changes` replace its members."""
    return {
        "format": "paceline.document/1",
        "harness": {"version": "0.1.0"},
        "created": "2026-11-21T07:00:00Z",
        "benchmark": {"name": "tiny", "version": 1, "params": {"size": 1}, "case": "size=1"},
        "protocol": {
            "repetitions": 3,
            "warmup_steps": 0,
            "steps": 100,
            "counting_steps": 100,
            "countings": 2,
            "quick": False,
            "seed": 0,
            "threads": 1,
        },
        "environment": document_environment(),
        "repetitions": [{"index": index, **REPETITION} for index in range(3)],
        "set_aside": [],
        "metrics": [
            metric_row("throughput", throughput, headline=True, low=throughput - 1, high=throughput + 1),
            metric_row("step_time", 1 / throughput, headline=True),
            metric_row("function_calls", 256.0, "learn/push", exact=True),
            metric_row("phase_time", 0.004, "learn/push"),
            metric_row("phase_time", 0.002, "rollout"),
        ],
        "phases": [],
        "telemetry": [telemetry_row(0, "cpu_utilization", [99.0, None, 100.0])],
        "profile": None,
        "warnings": [],
        **changes,
    }


def document_environment() -> dict[str, Any]:
    return {
        "python": "3.11.2",
        "implementation": "CPython",
        "torch": None,
        "cuda": None,
        "driver": None,
        "os": "Debian 12",
        "kernel": "6.1",
        "cpu_model": "one",
        "cpu_count": 2,
        "affinity": None,
        "memory_bytes": 1,
        "gpus": [],
        "packages": {},
        "variables": {},
        "path": "cpu",
    }


def encoded_document(**changes: Any) -> bytes:
    return json.dumps(document_body(**changes)).encode()
