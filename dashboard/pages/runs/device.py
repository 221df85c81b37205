"""A run's device: where the time of a profiled step went, and how well the device was used."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from dashboard import profile_tallies
from dashboard.sentences.formatting import numbers
from dashboard.sentences.measurements import device_time

MOST_KERNELS = 20

Json = dict[str, Any]


def device_context(document: Json) -> Json:
    """The profiled step's rows, which add up to it, and what is known of the device's use."""
    profile = document.get("device_profile")
    return {
        "timeline": timeline_rows(profile) if profile else None,
        "device_facts": device_facts(document),
    }


def timeline_rows(profile: Json) -> Json:
    """Kernels, heaviest first, with the sum of the others, and the idle time by its cause."""
    step = profile["step_seconds"]
    # What a copy or a collective takes beside kernels is nobody's loss: the rest is among the idle time.
    copies = [row for row in profile["rows"] if row["kind"] == "copy"]
    collectives = [row for row in profile["rows"] if profile_tallies.is_collective(row)]
    computing = [row for row in profile["rows"] if profile_tallies.is_computing(row)]
    rows = sorted(computing, key=lambda row: -row["seconds"])
    kept, others = rows[:MOST_KERNELS], rows[MOST_KERNELS:]
    rest = profile["rest"]
    return {
        "on_device": profile["device"] == "cuda",
        "steps": profile["steps"],
        "step": step,
        "explained": profile["explained"],
        "launches": profile["launches"],
        "rows": [{**row, "share": share_of_step(row["seconds"], step)} for row in kept],
        "others": {
            "number": len(others) + rest["rows"],
            "count": sum(row["count"] for row in others) + rest["count"],
            "seconds": sum(row["seconds"] for row in others) + rest["seconds"],
            "share": share_of_step(sum(row["seconds"] for row in others) + rest["seconds"], step),
        },
        "idle": idle_rows(profile, step),
        "copies": {name: sum(row[name] for row in copies) for name in ("count", "seconds")},
        "collectives": {name: sum(row[name] for row in collectives) for name in ("count", "seconds")},
    }


def idle_rows(profile: Json, step: float) -> list[Json]:
    """Each cause in words, with the phase that most of it fell into; `spread`: others have a part too."""
    words = device_time.IDLE_CAUSES if profile["device"] == "cuda" else device_time.HOST_CAUSES
    sums: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in profile["idle"]:
        sums[row["cause"]][row["phase"]] += row["seconds"]
    rows: list[Json] = [
        {
            "cause": words.get(cause, cause),
            "unexplained": cause == "unexplained",
            "phase": max(phases, key=lambda phase: phases[phase]),
            "spread": len(phases) > 1,
            "seconds": sum(phases.values()),
            "share": share_of_step(sum(phases.values()), step),
        }
        for cause, phases in sums.items()
    ]
    return sorted(rows, key=lambda row: (row["unexplained"], -row["seconds"]))


def share_of_step(seconds: float, step: float) -> float:
    return seconds / step if step else 0.0


def device_facts(document: Json) -> list[tuple[str, str]]:
    """(name, value or why there is none) of what a device's own counters tell."""
    use = document.get("device_use")
    if not use:
        return []
    flops, counters = use["flops"], use["counters"]
    facts = []
    if flops["status"] != "known":
        why = device_time.FLOPS_REASONS.get(flops["status"], flops["status"])
        facts.append(("Model FLOPs utilization", f"unknown: {why}"))
    if flops["uncounted"]:
        facts.append(("Operations without a count", ", ".join(flops["uncounted"])))
    for name, label in (("tensor_cores", "Tensor cores busy"), ("memory_bandwidth", "Memory bandwidth used")):
        value = counters[name]
        why = device_time.COUNTER_REASONS.get(counters["status"], counters["status"])
        facts.append((label, numbers.format_percent(value) if value is not None else f"not known: {why}"))
    if use["energy"]["step"] is None:
        facts.append(("Energy", "not known: its counter couldn't be read over the window"))
    return facts
