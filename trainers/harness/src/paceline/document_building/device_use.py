"""How devices were used: energy of a step, the model's operations beside what the device can do, counters.

What isn't known is None with the reason as a code, never a number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from ..measurement import TimedRepetition
from ..statistics import median
from ..watching.performance_counters import FAILED, KNOWN, SHORT_WINDOW, SHORTEST_WINDOW
from .device_peaks import find_peaks

SAMPLES = "samples"
# On many devices the power is a mean over a second, which trails behind: in less it says little.
LEAST_SECONDS = 3.0

Raw = dict[str, Any]
Samples = dict[tuple[str, str | None], list[float]]


@dataclass(slots=True)
class DeviceUse:
    """Samples of metrics, one per repetition, and the document's member; None without a device."""

    samples: Samples = field(default_factory=dict)
    member: Raw | None = None


def find_device_use(timed: Sequence[TimedRepetition], counted: Sequence[Mapping[str, Any]]) -> DeviceUse:
    """Return what all repetitions tell of the devices that they computed on."""
    if timed[0].environment["path"] != "cuda":
        return DeviceUse()
    samples: Samples = {}
    energy = _use_of_energy(timed, samples)
    flops = _use_of_flops(timed, counted, samples)
    return DeviceUse(samples, {"energy": energy, "flops": flops, "counters": _read_counters(timed)})


def _use_of_energy(timed: Sequence[TimedRepetition], samples: Samples) -> Raw:
    rows = [_energy_of_repetition(repetition) for repetition in timed]
    steps = [step for step, _ in rows]
    if None not in steps:
        known = [step for step in steps if step is not None]
        samples["energy", None] = known
        amounts = [repetition.result["counts"].get(SAMPLES) for repetition in timed]
        if all(amounts):
            pairs = zip(known, amounts, strict=True)
            samples["energy_per_sample", None] = [step / amount for step, amount in pairs]
    both = [(step, sampled) for step, sampled in rows if step is not None and sampled is not None]
    return {
        "step": median([step for step in steps if step is not None]) if None not in steps else None,
        "sampled": median([sampled for _, sampled in both]) if both else None,
    }


def _energy_of_repetition(repetition: TimedRepetition) -> tuple[float | None, float | None]:
    """Return the joules of a step by the devices' counters, and by their sampled power."""
    steps = repetition.result["steps"]
    devices = devices_of_repetition(repetition)
    counter = repetition.sampler.energy(repetition.window, devices)
    start, end = repetition.window
    long_enough = end - start >= LEAST_SECONDS
    sampled = repetition.sampler.integrated_power((start, end), devices) if long_enough else None
    return (
        None if counter is None else counter / steps,
        None if sampled is None else sampled / steps,
    )


def devices_of_repetition(repetition: TimedRepetition) -> list[int]:
    """Return the devices, as NVML counts them, that any rank held memory on; none where one isn't known."""
    named = {
        pair
        for result in repetition.ranks or (repetition.result,)
        for pair in zip_longest(result.get("devices", ()), result.get("device_ids", ()))
    }
    found = [repetition.sampler.find_device(number, identity) for number, identity in named]
    return [] if None in found else sorted({index for index in found if index is not None})


def is_in_use(repetition: TimedRepetition) -> Callable[[int], bool]:
    """Return whether the repetition computed on a device of NVML's; on any where that isn't known.

    Helpers may compute on a device of their own: NVML names their processes.
    """
    used = {*devices_of_repetition(repetition), *repetition.sampler.co_tenants.own_devices}
    return lambda index: not used or index in used


def device_rows(repetition: TimedRepetition, channel: str) -> list[Raw]:
    """Return the telemetry of a channel, of each device that the repetition computed on."""
    in_use = is_in_use(repetition)
    rows = repetition.sampler.channels(repetition.window)
    return [row for row in rows if row["channel"] == channel and in_use(row["device"])]


def _use_of_flops(
    timed: Sequence[TimedRepetition], counted: Sequence[Mapping[str, Any]], samples: Samples
) -> Raw:
    names = {gpu["name"] for gpu in timed[0].environment["gpus"]}
    used: Raw = {"device": next(iter(names)) if len(names) == 1 else None, "step": None, "types": {}}
    used |= {"uncounted": [], "status": "not_counted"}
    if not counted or counted[0]["operations"] is None:
        return used
    flops = counted[0]["model_flops"]
    used["uncounted"] = flops["uncounted"]
    if flops["compiled"]:
        return {**used, "status": "compiled"}
    used |= {"types": flops["types"], "step": sum(flops["types"].values())}
    return {**used, "status": _judge_flops(used, timed, samples)}


def _judge_flops(used: Mapping[str, Any], timed: Sequence[TimedRepetition], samples: Samples) -> str:
    peaks = find_peaks(used["device"]) if used["device"] else None
    if not used["step"]:
        return "none"
    if peaks is None:
        return "unknown_device"
    if not set(used["types"]) <= set(peaks):
        return "unknown_type"
    least = sum(number / peaks[kind] for kind, number in used["types"].items())
    shares = [
        100 * least / max(1, len(repetition.result["devices"])) / repetition.result["step_time"]["mean"]
        for repetition in timed
    ]
    if max(shares) > 100:
        return "impossible"
    samples["model_flops_utilization", None] = shares
    return "known"


def _read_counters(timed: Sequence[TimedRepetition]) -> Raw:
    """Return the means of what the device's own counters tell; of several in use, of the busiest one."""
    values: Raw = {}
    for name, channel in (
        ("tensor_cores", "gpu_tensor_utilization"),
        ("memory_bandwidth", "gpu_memory_bandwidth"),
    ):
        means = [
            row["mean"]
            for repetition in timed
            for row in device_rows(repetition, channel)
            if row["mean"] is not None
        ]
        values[name] = min(100.0, max(means)) if means else None
    if None not in values.values():
        return {**values, "status": KNOWN}
    status = timed[0].sampler.counters_status
    if status == KNOWN:
        longest = max(end - start for start, end in (repetition.window for repetition in timed))
        status = SHORT_WINDOW if longest < SHORTEST_WINDOW else FAILED
    return {**values, "status": status}
