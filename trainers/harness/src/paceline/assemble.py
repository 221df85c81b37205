"""From the repetitions' results to the document: one sample per repetition, their median and interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from . import __version__, counters, derived, limits, metrics, profile, run_warnings
from .document import FORMAT
from .measurement import Measurement, MeasurementRequest, TimedRepetition
from .statistics import median, median_interval, theil_sen_slope
from .watching.process import MeasurementError

Raw = dict[str, Any]
Bounds = tuple[float, float]
Samples = dict[tuple[str, str | None], list[float]]


def document(run: Measurement) -> Raw:
    """Return the document as plain data; raises MeasurementError where the code reported no finite number."""
    request, timed, counted = run.request, run.timed, run.counted
    _refuse_not_finite(timed)
    repetitions = [_repetition(one) for one in timed]
    phases = _phases(timed)
    environment = _environment(run)
    growth = {"memory_growth": _growth_interval(repetitions)}
    swept = derived.scaling_of(request.benchmark.scaling, run.points)
    job = derived.job_of(request.benchmark, repetitions, run.points)
    values = [
        *counters.with_exact(_noisy(_samples(timed, repetitions), request, growth), counted),
        *counters.values(counted),
        *derived.rows(swept, job),
    ]
    headlines = set(request.benchmark.headline)
    raw = {
        "format": FORMAT,
        "harness": {"version": __version__},
        "created": run.created,
        "benchmark": {
            "name": request.benchmark.name,
            "version": request.benchmark.version,
            "params": dict(request.case.params),
            "case": request.case.key,
        },
        "protocol": _protocol(request),
        "environment": environment,
        "repetitions": repetitions,
        "set_aside": [_disturbed(one) for one in run.set_aside],
        "metrics": [{**row, "headline": spelling(row) in headlines} for row in values],
        "phases": phases,
        "telemetry": _telemetry(timed, environment["path"] == "cuda"),
        "profile": profile.build(counted[0]) if counted else None,
        "warnings": [],
        "processes": [row for one in timed for row in _processes(one)],
        "limits": limits.judge(request.benchmark.limits, values),
        **derived.members(swept, job),
    }
    raw["warnings"] = run_warnings.find_warnings(raw, timed, counted, request.benchmark)
    return raw


def spelling(row: Mapping[str, Any]) -> str:
    """Spell a metric as a manifest's headline does: `phase_time:learn`, or the bare name."""
    return f"{row['name']}:{row['phase']}" if row["phase"] else str(row["name"])


def _protocol(request: MeasurementRequest) -> Raw:
    benchmark = request.benchmark
    return {
        "repetitions": benchmark.repetitions,
        "warmup_steps": benchmark.warmup_steps,
        "steps": benchmark.steps,
        "counting_steps": benchmark.counting_steps,
        "countings": benchmark.countings,
        "quick": request.quick,
        "seed": benchmark.seed,
        "threads": benchmark.threads,
        "gc": benchmark.gc,
        "affinity": None if benchmark.affinity is None else list(benchmark.affinity),
        "variables": dict(benchmark.variables),
    }


def _environment(run: Measurement) -> Raw:
    seen = run.timed[0].environment
    variables = {**run.request.benchmark.variables, **seen["variables"]}
    return {**seen, "driver": run.driver, "variables": variables}


def _repetition(one: TimedRepetition) -> Raw:
    result = one.result
    growth = theil_sen_slope([(step, resident) for step, resident in result["memory"]])
    window = {name: moment - one.started for name, moment in result["window"].items()}
    peaks = [peak for peak in (result["peak_memory"], one.sampler.peak(window["end"])) if peak is not None]
    return {
        "index": one.index,
        "steps": result["steps"],
        "seconds": result["seconds"],
        "startup_seconds": result["first_step"] - one.started,
        "warmup_seconds": result["warmup_seconds"],
        "throughput": result["steps"] / result["seconds"],
        "step_time": result["step_time"],
        "step_times": result["step_times"],
        "warmup_times": result["warmup_times"],
        # The kernel's own maximum knows what lay between two samples, the samples know the children.
        "peak_memory": max(peaks, default=None),
        "device_memory": result["device_memory"],
        "memory_growth": growth[0] * 1000 if growth else None,
        "memory_growth_interval": [growth[1] * 1000, growth[2] * 1000] if growth else None,
        "calibration_before": one.calibration_before,
        "calibration_after": one.calibration_after,
        "quality": result["quality"],
        "gauges": result["gauges"],
        "counts": result["counts"],
        "window": window,
        "waited": one.waited,
    }


def _processes(one: TimedRepetition) -> list[Raw]:
    window = one.result["window"]
    rows = one.sampler.processes((window["start"] - one.started, window["end"] - one.started))
    return [{"repetition": one.index, **row} for row in rows]


def _disturbed(one: TimedRepetition) -> Raw:
    return {"throughput": one.result["steps"] / one.result["seconds"], "waited": one.waited}


def _samples(timed: Sequence[TimedRepetition], repetitions: Sequence[Raw]) -> Samples:
    """Return the metrics that every repetition has, one sample each."""
    samples: dict[tuple[str, str | None], list[Any]] = {
        ("throughput", None): [row["throughput"] for row in repetitions],
        ("step_time", None): [row["step_time"]["mean"] for row in repetitions],
        ("step_time_p99", None): [row["step_time"]["p99"] for row in repetitions],
        ("peak_memory", None): [row["peak_memory"] for row in repetitions],
        ("memory_growth", None): [row["memory_growth"] for row in repetitions],
        ("peak_memory_pss", None): [_peak_pss(one) for one in timed],
        ("device_memory", None): [(row["device_memory"] or {}).get("allocated") for row in repetitions],
        ("device_memory_reserved", None): [
            (row["device_memory"] or {}).get("reserved") for row in repetitions
        ],
        ("cpu_utilization", None): [_utilization(one, "cpu_utilization") for one in timed],
        ("gpu_utilization", None): [_utilization(one, "gpu_utilization") for one in timed],
    }
    for field, prefix in (("counts", "count"), ("gauges", "gauge"), ("quality", "quality")):
        for name in sorted({name for row in repetitions for name in row[field]}):
            samples[f"{prefix}.{name}", None] = [row[field].get(name) for row in repetitions]
    for path in dict.fromkeys(row["path"] for one in timed for row in one.result["phases"]):
        found = [_phase_sum(one.result["phases"], path) for one in timed]
        samples["phase_time", path] = [total for total, _ in found]
        samples["phase_self_time", path] = [own for _, own in found]
        samples["phase_device_time", path] = [_device_time(one.result["phases"], path) for one in timed]
    return {place: values for place, values in samples.items() if None not in values}


def _phase_sum(rows: Sequence[Mapping[str, Any]], path: str) -> tuple[float, float]:
    found = [row for row in rows if row["path"] == path]
    return math.fsum(row["total"] for row in found), math.fsum(row["self"] for row in found)


def _device_time(rows: Sequence[Mapping[str, Any]], path: str) -> float | None:
    found = [row["device_total"] for row in rows if row["path"] == path and row["device_total"] is not None]
    return math.fsum(found) if found else None


def _peak_pss(one: TimedRepetition) -> float | None:
    window = one.result["window"]
    return one.sampler.proportional_peak((window["start"] - one.started, window["end"] - one.started))


def _utilization(one: TimedRepetition, name: str) -> float | None:
    if name == "gpu_utilization" and one.environment["path"] != "cuda":
        return None
    means = [row["mean"] for row in _channels(one) if row["channel"] == name and row["mean"] is not None]
    return max(means, default=None)


def _growth_interval(repetitions: Sequence[Raw]) -> tuple[float, float] | None:
    """Return the bounds of the memory's growth: those of the slopes, or of the repetitions where wider.

    Resident memory moves in steps, which makes a slope's own bounds too narrow; few repetitions that happen
    to agree do the same to theirs.
    """
    bounds = [row["memory_growth_interval"] for row in repetitions]
    if None in bounds:
        return None
    low, high = (median([pair[end] for pair in bounds]) for end in (0, 1))
    between = median_interval([row["memory_growth"] for row in repetitions]) or (low, high)
    return min(low, between[0]), max(high, between[1])


def _noisy(
    samples: Samples, request: MeasurementRequest, intervals: Mapping[str, Bounds | None]
) -> list[Raw]:
    rows = []
    for (name, phase), values in samples.items():
        known = metrics.describe_metric(name)
        if known is not None:
            interval = intervals.get(name) or median_interval(values) or (None, None)
            rows.append(
                {
                    "name": name,
                    "unit": known.unit,
                    "better": _better(known, request),
                    "kind": known.kind,
                    "phase": phase,
                    "exact": False,
                    "value": median(values),
                    "low": interval[0],
                    "high": interval[1],
                    "samples": values,
                }
            )
    return rows


def _better(known: metrics.Metric, request: MeasurementRequest) -> str:
    guard = request.benchmark.guard.get(known.name.removeprefix("quality."))
    if known.kind == "quality" and guard is not None and guard.minimum is None:
        return "lower"
    return known.better


def _phases(timed: Sequence[TimedRepetition]) -> list[Raw]:
    """Return the phases of the repetition with the median step time.

    Medians of each number would not add up; within one repetition the phases sum to its step.
    """
    ordered = sorted(timed, key=lambda one: float(one.result["step_time"]["mean"]))
    typical = ordered[(len(ordered) - 1) // 2].result
    step = typical["step_time"]["mean"]
    return [{**row, "share": row["total"] / step} for row in typical["phases"]][:500]


def _telemetry(timed: Sequence[TimedRepetition], uses_device: bool) -> list[Raw]:
    return [
        {"repetition": one.index, **row}
        for one in timed
        for row in _channels(one)
        # A machine's device says nothing about code that doesn't use it.
        if uses_device or row["device"] is None
    ]


def _channels(one: TimedRepetition) -> list[Raw]:
    window = one.result["window"]
    return one.sampler.channels((window["start"] - one.started, window["end"] - one.started))


def _refuse_not_finite(timed: Sequence[TimedRepetition]) -> None:
    for one in timed:
        for field in ("quality", "gauges", "counts"):
            for name, value in one.result[field].items():
                if not math.isfinite(value):
                    kind = {"gauges": "gauge", "counts": "count"}.get(field, field)
                    raise MeasurementError(
                        f"{kind} {name} is {value}, a benchmark must report finite numbers"
                    )
