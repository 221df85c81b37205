"""Builds the document from a measurement: one sample per repetition, their median and interval."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

from .. import __version__, metrics, profile, run_warnings
from ..counting import read_files
from ..document import FORMAT, READINGS_LIMIT
from ..manifest import limits
from ..measurement import Measurement, MeasurementRequest, TimedRepetition
from ..phase_names import spell_metric
from ..ranks.children_members import children_members, loader_samples
from ..ranks.rank_metrics import is_exact_counter, rank_samples
from ..ranks.rank_rows import build_ranks_member
from ..statistics import mean, median, median_interval, theil_sen_slope
from ..step_kinds import ENVIRONMENT, OPTIMIZER
from ..watching.sampler import thin_series
from . import costs, counter_reuse, counters, derived_metrics, device_use
from .learning_guards import diverged_names, finite_qualities, judge_guards, values_by_seed
from .reported_numbers import leave_out_unusable

# Of what ends a step: for the warnings alone.
OMITTED_OF_STEP = ("learned_after", "succeeded_after", "alternates")
# Phases whose number in a step is shown with what a step is.
PASSES = ("forward", "backward", "optimizer", "env_step")

Raw = dict[str, Any]
Bounds = tuple[float, float]
Samples = dict[tuple[str, str | None], list[float]]


def build_document(run: Measurement) -> Raw:
    """Return the document as plain data."""
    run = replace(run, timed=[leave_out_unusable(repetition) for repetition in run.timed])
    request, timed = run.request, run.timed
    repetitions = [_repetition_row(repetition) for repetition in timed]
    ranks = build_ranks_member([repetition.ranks for repetition in timed])
    used = device_use.find_device_use(timed, run.counted)
    samples = {
        **_samples_by_metric(timed, repetitions),
        **_whole_run_samples(rank_samples(ranks, len(timed)) | loader_samples(timed)),
        **used.samples,
    }
    learned: Raw = {"repetitions": repetitions, "protocol": _protocol_member(request)}
    if run.learned:
        learned["learning"] = [
            {"seed": row.seed, "quality": finite_qualities(row.quality)} for row in run.learned
        ]
    swept = derived_metrics.fit_scaling(request.benchmark.scaling, run.points)
    job = derived_metrics.project_full_job(request.benchmark, repetitions, run.points)
    growth = {"memory_growth": _growth_interval(repetitions)}
    values = [
        *_metric_rows_with_counters(run, _with_seeds(_timed_metric_rows(samples, request, growth), learned)),
        *derived_metrics.derived_rows(swept, job),
    ]
    environment = _environment_member(run)
    headlines = set(request.benchmark.headline)
    raw = {
        "format": FORMAT,
        "harness": {"version": __version__},
        "created": run.created,
        "benchmark": _benchmark_member(request),
        "environment": environment,
        **learned,
        "set_aside": [_set_aside_row(repetition) for repetition in run.set_aside],
        "metrics": [
            {**row, "headline": spell_metric(row["name"], row["phase"]) in headlines} for row in values
        ],
        "phases": _phase_rows(timed),
        "telemetry": _telemetry_rows(timed, environment["path"] == "cuda"),
        "profile": _profile_member(run),
        "warnings": [],
        "processes": [row for repetition in timed for row in _process_rows(repetition)],
        "limits": limits.judge_limits(request.benchmark.limits, values),
        **derived_metrics.document_members(swept, job),
    }
    raw |= _optional_members(run, raw, ranks, used.member)
    raw["warnings"] = run_warnings.find_warnings(
        raw, timed, run.counted, request.benchmark, run.profiled, run.uncounted
    )
    raw["costs"] = costs.build_costs(run, run.began, perf_counter())
    return raw


def _optional_members(run: Measurement, raw: Raw, ranks: Raw | None, used: Raw | None) -> Raw:
    """Return what a document has only of some runs; `raw`: what it has of each."""
    reported = [
        *(repetition.result["quality"] for repetition in run.timed),
        *(row.quality for row in run.learned),
    ]
    profiled = run.profiled.profile if run.profiled is not None else None
    members = {
        "step": _step_member(run, raw["phases"]),
        "ranks": ranks,
        "counting": _counting_member(run, raw["metrics"]),
        **children_members(run.timed),
        "guards": judge_guards(raw, run.request.benchmark.guard, diverged_names(reported)) or None,
        "device_use": used,
        "device_profile": None if profiled is None else dict(profiled),
    }
    return {name: member for name, member in members.items() if member is not None}


def _benchmark_member(request: MeasurementRequest) -> Raw:
    return {
        "name": request.benchmark.name,
        "version": request.benchmark.version,
        "params": dict(request.case.params),
        "case": request.case.key,
    }


def _step_member(run: Measurement, phases: Sequence[Raw]) -> Raw | None:
    step = run.timed[0].step
    if step is None:
        return None
    shown = {name: value for name, value in step.items() if name not in OMITTED_OF_STEP}
    return {**shown, "passes": _count_passes(run, phases)}


def _metric_rows_with_counters(run: Measurement, rows: Sequence[Raw]) -> list[Raw]:
    """The timed metrics and the counters, which another commit's counting may have given."""
    before = run.inputs.taken_from
    if before is not None:
        taken = counter_reuse.counting_rows(before.document["metrics"])
        return [*counter_reuse.mark_counts(rows, before), *taken]
    return [*counters.mark_exact_counts(rows, run.counted), *counters.counter_rows(run.counted)]


def _profile_member(run: Measurement) -> Raw | None:
    if run.inputs.taken_from is not None:
        taken: Raw | None = run.inputs.taken_from.document["profile"]
        return taken
    return profile.build_profile(run.counted[0]) if run.counted else None


def _counting_member(run: Measurement, values: Sequence[Mapping[str, Any]]) -> Raw | None:
    before = run.inputs.taken_from
    if before is not None:
        return {**before.document["counting"], "counted_at": before.commit}
    if not run.counted or run.counted[0]["inputs"] is None:
        return None
    same, inputs, benchmark = run.inputs.same_as, run.counted[0]["inputs"], run.request.benchmark
    doubts = list(inputs["doubts"]) if run.inputs.key else [read_files.TOO_MUCH]
    if benchmark.processes > 1 or benchmark.launcher:
        doubts = sorted({*doubts, read_files.PROCESSES})
    return {
        "counted_at": None,
        "key": run.inputs.key,
        "files": {} if doubts else inputs["files"],
        "doubts": doubts,
        "repeats": same is not None and counter_reuse.counters_repeat(same, values),
    }


def _protocol_member(request: MeasurementRequest) -> Raw:
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
        **({"precision": benchmark.precision} if benchmark.precision else {}),
    }


def _environment_member(run: Measurement) -> Raw:
    environment = run.timed[0].environment
    variables = {**run.request.benchmark.variables, **environment["variables"]}
    return {**environment, "driver": run.driver, "variables": variables}


def _repetition_row(repetition: TimedRepetition) -> Raw:
    result = repetition.result
    growth = theil_sen_slope([(step, resident) for step, resident in result["memory"]])
    start, end = repetition.window
    peaks = [peak for peak in (result["peak_memory"], repetition.sampler.peak(end)) if peak is not None]
    return {
        "index": repetition.index,
        "steps": result["steps"],
        "seconds": result["seconds"],
        "startup_seconds": result["first_step"] - repetition.started,
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
        "calibration_before": repetition.calibration_before,
        "calibration_after": repetition.calibration_after,
        "quality": finite_qualities(result["quality"]),
        "gauges": result["gauges"],
        "counts": result["counts"],
        "window": {"start": start, "end": end},
        "waited": repetition.waited,
        "stolen": repetition.stolen,
        **({"phase_times": phase_times} if (phase_times := result.get("phase_times")) else {}),
    }


def _process_rows(repetition: TimedRepetition) -> list[Raw]:
    rows = repetition.sampler.processes(repetition.window)
    return [{"repetition": repetition.index, **row} for row in rows]


def _set_aside_row(repetition: TimedRepetition) -> Raw:
    result = repetition.result
    throughput = result["steps"] / result["seconds"]
    return {"throughput": throughput, "waited": repetition.waited, "stolen": repetition.stolen}


def _samples_by_metric(timed: Sequence[TimedRepetition], repetitions: Sequence[Raw]) -> Samples:
    """Return the metrics that every repetition has, one sample each."""
    samples: dict[tuple[str, str | None], list[Any]] = {
        ("throughput", None): [row["throughput"] for row in repetitions],
        ("step_time", None): [row["step_time"]["mean"] for row in repetitions],
        ("step_time_p99", None): [row["step_time"]["p99"] for row in repetitions],
        ("peak_memory", None): [row["peak_memory"] for row in repetitions],
        ("memory_growth", None): [row["memory_growth"] for row in repetitions],
        ("peak_memory_pss", None): [
            repetition.sampler.proportional_peak(repetition.window) for repetition in timed
        ],
        ("device_memory", None): [(row["device_memory"] or {}).get("allocated") for row in repetitions],
        ("device_memory_reserved", None): [
            (row["device_memory"] or {}).get("reserved") for row in repetitions
        ],
        ("device_memory_unused", None): [_unused_memory(row["device_memory"] or {}) for row in repetitions],
        ("device_memory_split", None): [
            (row["device_memory"] or {}).get("inactive_split") for row in repetitions
        ],
        **{
            (name, None): [_highest_utilization(repetition, name) for repetition in timed]
            for name in ("cpu_utilization", "gpu_utilization")
        },
    }
    for field, prefix in (("counts", "count"), ("gauges", "gauge"), ("quality", "quality")):
        for name in sorted({name for row in repetitions for name in row[field]}):
            samples[f"{prefix}.{name}", None] = [row[field].get(name) for row in repetitions]
    for path in dict.fromkeys(row["path"] for repetition in timed for row in repetition.result["phases"]):
        sums = [_phase_sum(repetition.result["phases"], path) for repetition in timed]
        samples["phase_time", path] = [total for total, _ in sums]
        samples["phase_self_time", path] = [own for _, own in sums]
        samples["phase_device_time", path] = [
            _phase_device_time(repetition.result["phases"], path) for repetition in timed
        ]
    return {key: values for key, values in samples.items() if None not in values}


def _unused_memory(memory: Mapping[str, float]) -> float | None:
    """Return what was reserved at its peak beyond what was allocated at its own."""
    return memory["reserved"] - memory["allocated"] if memory else None


def _whole_run_samples(samples: Mapping[str, Sequence[float | None]]) -> Samples:
    """Return the metrics without a phase that every repetition has."""
    known = {name: [value for value in values if value is not None] for name, values in samples.items()}
    return {(name, None): known[name] for name, values in samples.items() if len(known[name]) == len(values)}


def _phase_sum(rows: Sequence[Mapping[str, Any]], path: str) -> tuple[float, float]:
    threads = [row for row in rows if row["path"] == path]
    return math.fsum(row["total"] for row in threads), math.fsum(row["self"] for row in threads)


def _phase_device_time(rows: Sequence[Mapping[str, Any]], path: str) -> float | None:
    times = [row["device_total"] for row in rows if row["path"] == path and row["device_total"] is not None]
    return math.fsum(times) if times else None


def _highest_utilization(repetition: TimedRepetition, name: str) -> float | None:
    if name == "gpu_utilization":
        in_use = repetition.environment["path"] == "cuda"
        means = [row["mean"] for row in device_use.device_rows(repetition, name)] if in_use else []
    else:
        rows = repetition.sampler.channels(repetition.window)
        means = [row["mean"] for row in rows if row["channel"] == name]
    return max((mean for mean in means if mean is not None), default=None)


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


def _timed_metric_rows(
    samples: Samples, request: MeasurementRequest, intervals: Mapping[str, Bounds | None]
) -> list[Raw]:
    rows = []
    for (name, phase), values in samples.items():
        metric = metrics.describe_metric(name)
        if metric is not None:
            interval = intervals.get(name) or median_interval(values) or (None, None)
            rows.append(
                {
                    "name": name,
                    "unit": metric.unit,
                    "better": _better_direction(metric, request),
                    "kind": metric.kind,
                    "phase": phase,
                    "exact": is_exact_counter(name, values),
                    "value": median(values),
                    "low": interval[0],
                    "high": interval[1],
                    "samples": values,
                }
            )
    return rows


def _better_direction(metric: metrics.Metric, request: MeasurementRequest) -> str:
    guard = request.benchmark.guard.get(metric.name.removeprefix("quality."))
    return guard.direction if metric.kind == "quality" and guard is not None else metric.better


def _with_seeds(rows: Sequence[Raw], learned: Raw) -> list[Raw]:
    """The rows, those of qualities with the seeds' values as samples where the whole ran with several.

    What another seed would have led to isn't seen in repetitions of one. What a seed lacks is left out.
    """
    if "learning" not in learned:
        return list(rows)
    seeded = []
    for row in rows:
        if row["kind"] != "quality":
            seeded.append(row)
        elif by_seed := values_by_seed(row["name"].removeprefix("quality."), learned):
            values = list(by_seed.values())
            low, high = median_interval(values) or (None, None)
            seeded.append({**row, "value": mean(values), "low": low, "high": high, "samples": values})
    return seeded


def _phase_rows(timed: Sequence[TimedRepetition]) -> list[Raw]:
    """Return the phases of the repetition with the median step time.

    Medians of each number would not add up; within one repetition the phases sum to its step.
    """
    ordered = sorted(timed, key=lambda repetition: float(repetition.result["step_time"]["mean"]))
    typical = ordered[(len(ordered) - 1) // 2].result
    step = typical["step_time"]["mean"]
    return [{**row, "share": row["total"] / step} for row in typical["phases"]][:500]


def _count_passes(run: Measurement, phases: Sequence[Raw]) -> dict[str, float]:
    """Return how often per step the main thread was in each phase of this name, wherever it nests.

    Of the forward phases, where not marked by hand, only a model's are passes, and none that a backward pass
    computes again. A counting tells which ones are, and how often optimizers step; without one they are left
    out, and of optimizers more than one.
    """
    before = run.inputs.taken_from
    if before is not None and "passes" in before.document.get("step", {}):
        return dict(before.document["step"]["passes"])
    sums: defaultdict[str, float] = defaultdict(float)
    for row in phases:
        *around, name = row["path"].split("/")
        again = name == "forward" and "backward" in around
        if name in PASSES and row["thread"] == "main" and not again:
            sums[name] += row["count"]
    counting = run.counted[0] if run.counted else None
    if run.request.benchmark.auto and "forward" in sums:
        if counting is None or not counting["model_share"]:
            del sums["forward"]
        else:
            sums["forward"] *= counting["model_share"]
    kind = (run.timed[0].step or {}).get("kind")
    operations = counting["operations"] if counting else None
    if kind == ENVIRONMENT or "optimizer" not in sums:
        # Learning comes now and then: the same window says how often it did as of backward passes.
        return dict(sums)
    if operations is not None:
        # A wrapper of an optimizer is called in micro-steps too, in which it doesn't step.
        sums["optimizer"] = math.fsum(tally["optimizer_steps"] for tally in operations.values())
    elif sums["optimizer"] > 1 and kind == OPTIMIZER:
        # Uncounted, it isn't known whether others step too or a wrapper is called.
        del sums["optimizer"]
    return dict(sums)


def _telemetry_rows(timed: Sequence[TimedRepetition], uses_device: bool) -> list[Raw]:
    rows = [
        {"repetition": repetition.index, **row}
        for repetition in timed
        for row in repetition.sampler.channels(repetition.window)
        # A machine's device says nothing about code that doesn't use it.
        if row["device"] is None or (uses_device and device_use.is_in_use(repetition)(row["device"]))
    ]
    most = READINGS_LIMIT // max(1, len(rows))
    for row in rows:
        row["values"], row["interval"] = thin_series(row["values"], row["interval"], most)
    return rows
