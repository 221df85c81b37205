"""What makes a GPU noisy, as NVML tells it: facts, and the rules with the command that would change each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..watching.nvml import Device, Devices
from .findings import Finding
from .host_rules import UNREADABLE

MILLIWATTS = 1000


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """Of one device; None is what it doesn't tell. Clocks are in MHz, power in W."""

    index: int
    persistence: bool | None = None
    clock: int | None = None
    highest_clock: int | None = None
    application_clock: int | None = None
    power_cap: float | None = None
    default_power_cap: float | None = None
    error_correction: bool | None = None
    uncorrected_errors: int | None = None
    is_divided: bool | None = None
    co_tenants: tuple[int, ...] | None = None
    held_down: tuple[str, ...] = ()


def read_gpus(devices: Devices) -> list[GpuFacts]:
    """The facts of the visible devices."""
    reasons = devices.throttling()
    return [
        _read_gpu(devices.api, device, tuple(sorted(why for index, why in reasons if index == device.index)))
        for device in devices.visible
    ]


def _read_gpu(api: Any, device: Device, held_down: tuple[str, ...]) -> GpuFacts:
    def ask(call: Callable[[], Any]) -> Any:
        # An old driver, or package, doesn't know every call.
        try:
            return call()
        except (api.NVMLError, AttributeError):
            return None

    handle = device.handle
    persistence = ask(lambda: api.nvmlDeviceGetPersistenceMode(handle))
    correction = ask(lambda: api.nvmlDeviceGetEccMode(handle)[0])
    divided = ask(lambda: api.nvmlDeviceGetMigMode(handle)[0])
    cap = ask(lambda: api.nvmlDeviceGetPowerManagementLimit(handle))
    default = ask(lambda: api.nvmlDeviceGetPowerManagementDefaultLimit(handle))
    processes = ask(lambda: api.nvmlDeviceGetComputeRunningProcesses(device.part))
    return GpuFacts(
        index=device.index,
        persistence=None if persistence is None else bool(persistence),
        clock=ask(lambda: api.nvmlDeviceGetClockInfo(handle, api.NVML_CLOCK_SM)),
        highest_clock=ask(lambda: api.nvmlDeviceGetMaxClockInfo(handle, api.NVML_CLOCK_SM)),
        application_clock=ask(lambda: api.nvmlDeviceGetApplicationsClock(handle, api.NVML_CLOCK_SM)),
        power_cap=None if cap is None else cap / MILLIWATTS,
        default_power_cap=None if default is None else default / MILLIWATTS,
        error_correction=None if correction is None else bool(correction),
        uncorrected_errors=ask(
            lambda: api.nvmlDeviceGetTotalEccErrors(
                handle, api.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, api.NVML_VOLATILE_ECC
            )
        ),
        is_divided=None if divided is None else bool(divided),
        co_tenants=None if processes is None else tuple(process.pid for process in processes),
        held_down=held_down,
    )


def judge_gpu(facts: GpuFacts) -> Iterator[Finding]:
    """A row for each fact of a device."""
    name, smi = f"GPU {facts.index}", f"sudo nvidia-smi --id={facts.index}"
    yield _judge_flag(
        f"{name} persistence mode",
        facts.persistence,
        matters_if=False,
        why="the driver is loaded anew for each process, and clocks fall back",
        command=f"{smi} --persistence-mode=1",
    )
    yield _judge_clocks(facts, name, smi)
    yield _judge_power(facts, name, smi)
    errors = facts.uncorrected_errors or 0
    correction = {True: "on", False: "off", None: UNREADABLE}[facts.error_correction]
    yield Finding(
        f"{name} ECC",
        correction + (f", {errors} uncorrected errors since the start" if errors else ""),
        "its memory fails: reset or replace it" if errors else "",
        matters=None if facts.error_correction is None else errors > 0,
        command=f"{smi} --gpu-reset" if errors else "",
    )
    yield _judge_flag(
        f"{name} MIG",
        facts.is_divided,
        matters_if=True,
        why="the other parts share its clock, its power and its way to memory",
        command=f"{smi} --multi-instance-gpu=0",
    )
    yield _judge_tenants(facts, name)


def _judge_flag(what: str, value: bool | None, *, matters_if: bool, why: str, command: str) -> Finding:
    if value is None:
        return Finding(what, UNREADABLE)
    matters = value is matters_if
    return Finding(
        what,
        "on" if value else "off",
        why if matters else "",
        matters=matters,
        command=command if matters else "",
    )


def _judge_clocks(facts: GpuFacts, name: str, smi: str) -> Finding:
    if facts.clock is None or facts.highest_clock is None:
        return Finding(f"{name} clocks", UNREADABLE)
    value = f"{facts.clock} of {facts.highest_clock} MHz now"
    value += f", of applications {facts.application_clock} MHz" if facts.application_clock else ""
    value += f", held down by {', '.join(facts.held_down)}" if facts.held_down else ""
    # Whether they are locked, NVML doesn't tell. A clock below the highest is one that it can keep.
    locked = facts.application_clock or facts.highest_clock * 3 // 4
    return Finding(
        f"{name} clocks",
        value,
        "the clock follows heat and power, unless it is locked",
        matters=True,
        command=f"{smi} --lock-gpu-clocks={locked}  # --reset-gpu-clocks undoes it",
    )


def _judge_power(facts: GpuFacts, name: str, smi: str) -> Finding:
    if facts.power_cap is None:
        return Finding(f"{name} power cap", UNREADABLE)
    default = facts.default_power_cap
    lowered = default is not None and facts.power_cap < default
    return Finding(
        f"{name} power cap",
        f"{facts.power_cap:.0f} W" + (f", {default:.0f} W by default" if default is not None else ""),
        "at full load the clock follows the cap" if lowered else "",
        matters=lowered,
        command=f"{smi} --power-limit={default:.0f}" if lowered else "",
    )


def _judge_tenants(facts: GpuFacts, name: str) -> Finding:
    if facts.co_tenants is None:
        return Finding(f"{name} processes", UNREADABLE)
    others = facts.co_tenants
    return Finding(
        f"{name} processes",
        ", ".join(map(str, others)) or "none",
        "they compute on it beside what is measured" if others else "",
        matters=bool(others),
        command=f"kill {' '.join(map(str, others))}  # or CUDA_VISIBLE_DEVICES of another device"
        if others
        else "",
    )
