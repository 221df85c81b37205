"""Documents as the harness writes them, with values that look like those of a training run."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from dashboard.models import Case

# (name, unit, better, kind, headline, value as a multiple of the step time or by itself)
METRICS = (
    ("throughput", "steps/s", "higher", "rate", True),
    ("step_time", "s", "lower", "time", True),
    ("peak_memory", "bytes", "lower", "memory", True),
    ("memory_growth", "bytes/1000 steps", "lower", "memory", True),
    ("step_time_p99", "s", "lower", "time", False),
    ("cpu_utilization", "%", "higher", "utilization", False),
    ("quality.score", "1", "higher", "quality", False),
)
# path: share of the step in itself
PHASES = {
    "rollout": 0.02,
    "rollout/act": 0.13,
    "rollout/env_step": 0.09,
    "learn": 0.03,
    "learn/sample": 0.11,
    "learn/forward": 0.16,
    "learn/backward": 0.24,
    "learn/optimizer": 0.1,
    "learn/push": 0.05,
    "(unattributed)": 0.07,
}
COUNTERS = {
    "function_calls": 412.0,
    "tensor_operations": 96.0,
    "host_device_copies": 0.0,
    "scalar_reads": 3.0,
}
REPETITIONS = 5
# Of the steps, as multiples of the step time.
SPREAD = {"mean": 1.05, "p50": 1.0, "p90": 1.3, "p99": 1.9}


COMPLETE = Path(__file__).parent.parent / "golden" / "paceline.document-1-complete.json"


def complete_document(**changes: Any) -> dict[str, Any]:
    """A document that has every part that a document may have; `changes` replace its members."""
    return {**json.loads(COMPLETE.read_bytes()), **changes}


def create_document(case: Case, step_time: float, noise: random.Random) -> dict[str, Any]:
    samples = [step_time * noise.gauss(1, 0.012) for _ in range(REPETITIONS)]
    return {
        "format": "paceline.document/1",
        "harness": {"version": "0.1.0"},
        "created": "2026-11-21T07:00:00Z",
        "benchmark": {"name": case.benchmark, "version": 1, "params": case.params, "case": case.key},
        "protocol": {
            "repetitions": REPETITIONS,
            "warmup_steps": 1000,
            "steps": 11000,
            "counting_steps": 200,
            "quick": False,
            "seed": 0,
            "threads": 1,
        },
        "environment": environment_member(),
        "repetitions": [repetition_row(index, sample, noise) for index, sample in enumerate(samples)],
        "set_aside": [],
        "metrics": metric_rows(step_time, samples, noise),
        "phases": phase_rows(step_time),
        "telemetry": [row for index in range(2) for row in telemetry_rows(index, noise)],
        "profile": profile_member(step_time),
        "warnings": [],
    }


def environment_member() -> dict[str, Any]:
    return {
        "python": "3.11.2", "torch": "2.13.0+cpu", "cuda": None, "driver": None, "os": "Debian GNU/Linux 12",
        "kernel": "6.1.0", "cpu_model": "AMD EPYC 7B13", "cpu_count": 2, "memory_bytes": 8_340_000_000,
        "gpus": [], "packages": {"numpy": "2.4.6", "torch": "2.13.0"}, "variables": {"OMP_NUM_THREADS": "1"},
        "path": "cpu", "cpu_features": ["avx2", "avx512f"], "settings": {"bf16": "off: no bfloat16"},
    }  # fmt: skip


def repetition_row(index: int, step_time: float, noise: random.Random) -> dict[str, Any]:
    edges = [step_time * (0.8 + 0.05 * edge) for edge in range(31)]
    counts = [
        int(11000 * 0.11 * 2.718 ** (-abs(bucket - 4) / 2.2) * noise.uniform(0.9, 1.1))
        for bucket in range(30)
    ]
    return {
        "index": index, "steps": 11000, "seconds": 11000 * step_time, "startup_seconds": 2.1,
        "warmup_seconds": 1000 * step_time, "throughput": 1 / step_time,
        "step_time": {name: step_time * by for name, by in SPREAD.items()},
        "step_times": {
            "histogram": {"edges": edges, "counts": counts},
            "thinned": {"every": 10, "values": [step_time] * 20},
        },
        "peak_memory": 412e6, "memory_growth": 52e3, "calibration_before": 0.05, "calibration_after": 0.05,
        "quality": {"score": 7.1}, "gauges": {}, "window": {"start": 3.2, "end": 14.8}, "waited": 0.0,
    }  # fmt: skip


def metric_rows(step_time: float, samples: list[float], noise: random.Random) -> list[dict[str, Any]]:
    values = {
        "throughput": [1 / sample for sample in samples],
        "step_time": samples,
        "step_time_p99": [1.9 * sample for sample in samples],
        "peak_memory": [412e6 * noise.gauss(1, 0.004) for _ in samples],
        "memory_growth": [52e3 * noise.gauss(1, 0.2) for _ in samples],
        "cpu_utilization": [98 * noise.gauss(1, 0.01) for _ in samples],
        "quality.score": [7.1 * noise.gauss(1, 0.05) for _ in samples],
    }
    whole = [
        metric_row(name, unit, better, kind, values[name], headline)
        for name, unit, better, kind, headline in METRICS
    ]
    timed = [
        metric_row(
            "phase_self_time", "s", "lower", "time",
            [share * sample for sample in samples], phase=path,
        )
        for path, share in PHASES.items()
    ]  # fmt: skip
    counted = [
        metric_row(name, f"{name.split('_')[-1]}/step", "lower", "counter", [value] * 2, exact=True)
        for name, value in COUNTERS.items()
    ]
    by_phase = [
        metric_row(
            "function_calls", "calls/step", "lower", "counter",
            [412 * share] * 2, exact=True, phase=path,
        )
        for path, share in PHASES.items()
    ]  # fmt: skip
    grown = [
        metric_row("phase_memory", "bytes", "lower", "memory", [size], phase=path)
        for path, size in (("(setup)", 310e6), ("learn/push", step_time * 4e9))
    ]
    return whole + timed + counted + by_phase + grown


def metric_row(
    name: str, unit: str, better: str, kind: str, samples: list[float], headline: bool = False,
    exact: bool = False, phase: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    ordered = sorted(samples)
    return {
        "name": name, "unit": unit, "better": better, "kind": kind, "phase": phase, "exact": exact,
        "headline": headline, "value": ordered[len(ordered) // 2],
        "low": None if exact else ordered[0], "high": None if exact else ordered[-1], "samples": samples,
    }  # fmt: skip


def phase_rows(step_time: float) -> list[dict[str, Any]]:
    return [phase_row(path, share, step_time) for path, share in PHASES.items()]


def phase_row(path: str, share: float, step_time: float) -> dict[str, Any]:
    total = share + sum(other for name, other in PHASES.items() if name.startswith(path + "/"))
    time = total * step_time
    return {
        "path": path, "thread": "main", "count": 1.0, "total": time, "self": share * step_time,
        "share": total, "p50": 0.97 * time, "p90": 1.2 * time, "p99": 1.7 * time, "device_total": None,
    }  # fmt: skip


def telemetry_rows(index: int, noise: random.Random) -> list[dict[str, Any]]:
    readings = 160
    grown = [120e6 + 290e6 * min(1, tick / 25) + 60e3 * tick for tick in range(readings)]
    busy = [min(100.0, 4.0 * tick) * noise.gauss(0.97, 0.02) for tick in range(readings)]
    channels = (
        ("memory", "bytes", grown),
        ("cpu_utilization", "%", [None if tick == 40 else value for tick, value in enumerate(busy)]),
        ("threads", "1", [3.0] * readings),
    )
    return [
        {
            "repetition": index, "channel": name, "device": None, "unit": unit, "start": 0.0, "interval": 0.1,
            "values": values, "mean": sum(filter(None, values)) / readings,
            "peak": max(filter(None, values)), "idle_share": 0.02 if unit == "%" else None,
        }
        for name, unit, values in channels
    ]  # fmt: skip


def profile_member(step_time: float) -> dict[str, Any]:
    functions = [
        ("backward", "torch/_tensor.py", 500, 1.0, 0.24, "learn/backward"),
        ("forward", "torch/nn/modules/linear.py", 130, 12.0, 0.16, "learn/forward"),
        ("push", "trainers/snake_dqn/replay.py", 31, 1.0, 0.05, "learn/push"),
        ("sample", "trainers/snake_dqn/replay.py", 44, 1.0, 0.11, "learn/sample"),
        ("step", "trainers/snake_dqn/environment.py", 72, 1.0, 0.09, "rollout/env_step"),
    ]
    return {
        "steps": 200,
        "functions": [
            {
                "function": name, "file": file, "line": line, "calls": calls, "self": share * step_time,
                "cumulative": 1.4 * share * step_time, "phase": path,
            }
            for name, file, line, calls, share, path in functions
        ],
        "rest": {"functions": 212, "calls": 180.0, "self": 0.2 * step_time},
        "operations": [{"name": "aten::mm", "count": 12.0}, {"name": "aten::add_", "count": 40.0}],
    }  # fmt: skip
