"""Metrics of the counting processes. A counter is exact if two countings gave the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .. import metrics
from ..statistics import median

Raw = dict[str, Any]
Counted = Mapping[str, Any]
Numbers = dict[tuple[str, str | None], float]

OPERATION_COUNTERS = (
    "host_device_copies",
    "copied_bytes",
    "scalar_reads",
    "synchronisations",
    "tensors_allocated",
    "allocated_bytes",
    "optimizer_steps",
    "unused_gradient_operations",
)


def counter_rows(counted: Sequence[Counted]) -> list[Raw]:
    """Return the metric rows, one sample per counting; headlines aren't marked yet."""
    numbers = [_numbers_by_phase(counting) for counting in counted]
    keys = dict.fromkeys(key for by_phase in numbers for key in by_phase)
    unsure = _displaced_counters(counted)
    rows = [_metric_row(key, [by_phase.get(key, 0.0) for by_phase in numbers], unsure) for key in keys]
    for path in dict.fromkeys(path for counting in counted for path in counting["memory"]):
        sizes = [float(counting["memory"].get(path, 0)) for counting in counted]
        rows.append(_metric_row(("phase_memory", path), sizes, unsure))
    return rows


def inexact_counters(counted: Sequence[Counted]) -> list[str]:
    """Return the names of the counters that two countings gave differently, or that were disturbed."""
    numbers = [_numbers_by_phase(counting) for counting in counted]
    keys = {key for by_phase in numbers for key in by_phase}
    differing = {key[0] for key in keys if len({by_phase.get(key, 0.0) for by_phase in numbers}) > 1}
    reported = {
        f"count.{name}"
        for name in {name for counting in counted for name in counting["counts"]}
        if len(counted) > 1 and not _count_repeats(name, counted)
    }
    disturbed = _displaced_counters(counted) & {name for name, _ in keys}
    return sorted(differing | reported | disturbed)


def mark_exact_counts(rows: Sequence[Raw], counted: Sequence[Counted]) -> list[Raw]:
    """Return the timed metrics, exact where the code counts the same in all countings and repetitions.

    Their values stay those of the timed window, which is longer and runs at the code's own speed: a count of
    missed deadlines depends on it.
    """
    marked = []
    for row in rows:
        name = row["name"].removeprefix("count.")
        if name != row["name"]:
            exact = _count_repeats(name, counted) and _are_equal(row["samples"])
            marked.append({**row, "exact": exact})
        else:
            marked.append(row)
    return marked


def _count_repeats(name: str, counted: Sequence[Counted]) -> bool:
    return len(counted) > 1 and _are_equal([counting["counts"].get(name) for counting in counted])


def _are_equal(samples: Sequence[float | None]) -> bool:
    return len(set(samples)) == 1


def _displaced_counters(counted: Sequence[Counted]) -> set[str]:
    """Return the counters that are incomplete, since the code set a profile of its own."""
    return {"function_calls", "graph_breaks"} if any(counting["displaced"] for counting in counted) else set()


def _numbers_by_phase(counted: Counted) -> Numbers:
    steps = counted["steps"]
    numbers: Numbers = _with_total("function_calls", counted["calls"], steps)
    operations = counted["operations"]
    if operations is not None:
        totals = {path: sum(tally["kinds"].values()) for path, tally in operations.items()}
        numbers |= _with_total("tensor_operations", totals, steps)
        if not counted["model_flops"]["compiled"]:
            numbers |= _with_total(
                "model_flops", {path: tally["model_flops"] for path, tally in operations.items()}, steps
            )
        for name in OPERATION_COUNTERS:
            numbers |= _with_total(name, {path: tally[name] for path, tally in operations.items()}, steps)
        for name in ("graph_breaks", "recompilations"):
            numbers |= _with_total(name, counted[name], steps)
    return numbers


def _with_total(name: str, phases: Mapping[str, float], steps: int) -> Numbers:
    """Return the whole under None beside the phases; a phase that has none of it is left out.

    In each phase a whole number was counted, and so in all: what dividing it by the steps has cut off doesn't
    add up, or 64 calls would be 63.999999999999986.
    """
    total: Numbers = {(name, None): round(math.fsum(phases.values()) * steps) / steps}
    return total | {(name, path): float(number) for path, number in sorted(phases.items()) if number}


def _metric_row(key: tuple[str, str | None], samples: list[float], unsure: set[str]) -> Raw:
    metric = metrics.METRICS[key[0]]
    counter = metric.kind == "counter" and metric.name not in unsure
    return {
        "name": metric.name,
        "unit": metric.unit,
        "better": metric.better,
        "kind": metric.kind,
        "phase": key[1],
        "exact": counter and len(samples) > 1 and _are_equal(samples),
        "value": median(samples),
        "low": None,
        "high": None,
        "samples": samples,
    }
