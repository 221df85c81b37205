"""NVIDIA devices through NVML: probed once, sampled often. A missing reading is None, never 0."""

from __future__ import annotations

import contextlib
import ctypes
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from .performance_counters import PerformanceCounters
from .presence_intervals import PresenceIntervals

# By the ends of NVML's names, which begin with one of the prefixes below: the second before driver 535.
POWER_CAP = "power cap"
THROTTLE_REASONS = {
    "SwPowerCap": POWER_CAP,
    "HwSlowdown": "hardware slowdown",
    "SyncBoost": "sync boost",
    "SwThermalSlowdown": "temperature",
    "HwThermalSlowdown": "temperature (hardware)",
    "HwPowerBrakeSlowdown": "power brake",
}
_REASON_PREFIXES = ("nvmlClocksEventReason", "nvmlClocksThrottleReason")
_REASON_CALLS = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")


@dataclass(frozen=True, slots=True)
class Device:
    """One device by NVML's index. `part` is its MIG instance, or the device itself where it isn't divided."""

    index: int
    handle: Any
    part: Any
    # UUIDs without their prefix: the device's, and the instance's.
    identities: frozenset[str] = frozenset()

    @property
    def is_divided(self) -> bool:
        """Whether only a part of the device is ours."""
        return self.part is not self.handle


@dataclass(frozen=True, slots=True)
class Channel:
    """One kind of reading: its unit, and how NVML gives it for a device."""

    name: str
    unit: str
    read: Callable[[Any, Device], float]


# A MIG instance has memory and processes of its own; its clocks, power and temperature are the device's.
CHANNELS = (
    Channel("gpu_utilization", "%", lambda api, device: api.nvmlDeviceGetUtilizationRates(device.handle).gpu),
    Channel("gpu_memory", "bytes", lambda api, device: api.nvmlDeviceGetMemoryInfo(device.part).used),
    Channel(
        "gpu_sm_clock",
        "MHz",
        lambda api, device: api.nvmlDeviceGetClockInfo(device.handle, api.NVML_CLOCK_SM),
    ),
    Channel(
        "gpu_memory_clock",
        "MHz",
        lambda api, device: api.nvmlDeviceGetClockInfo(device.handle, api.NVML_CLOCK_MEM),
    ),
    Channel("gpu_power", "W", lambda api, device: _read_milliwatts(api, device) / 1000),
    Channel(
        "gpu_temperature",
        "°C",
        lambda api, device: api.nvmlDeviceGetTemperature(device.handle, api.NVML_TEMPERATURE_GPU),
    ),
)

# Seconds of which a reading tells at most. On an H100 the utilization is that of 0.2 s, and up to 0.2 s old.
LOOKS_BACK = {"gpu_utilization": 0.4}


@dataclass(slots=True)
class CoTenants:
    """The other processes that compute on the devices, as far as NVML's process ids can be told apart.

    In a container NVML may speak of the host's process ids. Only where it named one of the measured
    processes are its ids ours, and only then is a process called foreign.
    """

    others: PresenceIntervals[tuple[int, int]] = field(default_factory=PresenceIntervals)
    # The devices on which NVML named one of the measured processes.
    own_devices: set[int] = field(default_factory=set)

    def foreign_processes(self, start: float = -math.inf, end: float = math.inf) -> set[tuple[int, int]]:
        """Return (device, process id) of those that computed between the moments and surely aren't ours."""
        return self.others.between(start, end) if self.own_devices else set()


@dataclass(slots=True)
class Devices:
    """The devices that the measured process may use; none without a driver."""

    api: Any = None
    visible: list[Device] = field(default_factory=list)
    driver: str | None = None
    reasons: Mapping[int, str] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)
    counters: PerformanceCounters = field(default_factory=PerformanceCounters)

    def read(self) -> list[tuple[int, dict[str, float | None]]]:
        """Return each device's reading of each channel; None where the device doesn't know it or is lost."""
        return [
            (device.index, {channel.name: self._try(device, channel.read) for channel in CHANNELS})
            for device in self.visible
        ]

    def read_counters(self) -> list[tuple[int, dict[str, float | None]]]:
        """Return what the devices' performance counters tell since the reading before."""
        return [
            (
                device.index,
                self.counters.read_counters(device.index, device.handle, divided=device.is_divided),
            )
            for device in self.visible
        ]

    def read_energy(self) -> list[tuple[int, float]]:
        """Return the joules that each device has used since its driver was loaded, where it counts them.

        A part of a divided device has no counter of its own.
        """
        readings = (
            (device.index, self._try(device, _read_millijoules))
            for device in self.visible
            if not device.is_divided
        )
        return [(index, reading / 1000) for index, reading in readings if reading is not None]

    def throttling(self) -> set[tuple[int, str]]:
        """Return (device, reason) for each reason for which a clock is held down right now."""
        reasons = set()
        for device in self.visible:
            bits = int(self._try(device, self._throttle_bits) or 0)
            reasons |= {(device.index, reason) for bit, reason in self.reasons.items() if bits & bit}
        return reasons

    def find_index(self, number: int, identity: str | None) -> int | None:
        """Return NVML's index of a device that a process counts as `number`; None where unknown.

        By its UUID where that is known: the process may have been given, or have chosen, other devices.
        """
        if identity is not None and any(device.identities for device in self.visible):
            known = [device.index for device in self.visible if identity in device.identities]
            return known[0] if known else None
        return self.visible[number].index if number < len(self.visible) else None

    def are_exclusive(self) -> bool:
        """Whether one of them is set to take a single process at a time."""
        return any(
            self._try(device, lambda api, device: api.nvmlDeviceGetComputeMode(device.handle))
            for device in self.visible
        )

    def note_co_tenants(self, co_tenants: CoTenants, own_pids: set[int], moment: float) -> None:
        """Add the processes that compute on the devices right now."""
        for device in self.visible:
            try:
                pids = {process.pid for process in self.api.nvmlDeviceGetComputeRunningProcesses(device.part)}
            except self.api.NVMLError:
                continue
            if pids & own_pids:
                co_tenants.own_devices.add(device.index)
            for pid in pids - own_pids:
                co_tenants.others.note((device.index, pid), moment)

    def close(self) -> None:
        """Close the connection to the driver."""
        self.counters.close()
        if self.api is not None:
            with contextlib.suppress(self.api.NVMLError):
                self.api.nvmlShutdown()

    def _try(self, device: Device, read: Callable[[Any, Device], float]) -> float | None:
        try:
            return float(read(self.api, device))
        except self.api.NVMLError as error:
            if isinstance(error, self.api.NVMLError_GpuIsLost):
                self.lost.add(device.index)
            return None

    def _throttle_bits(self, api: Any, device: Device) -> float:
        # A new package knows the new name also where the driver doesn't.
        for name in _REASON_CALLS:
            with contextlib.suppress(AttributeError, api.NVMLError_FunctionNotFound):
                return float(getattr(api, name)(device.handle))
        return 0.0


def probe_devices(environment: Mapping[str, str]) -> Devices:
    """Find the devices that a process with this environment may use; none without pynvml or a driver."""
    if not _is_driver_installed():
        return Devices()
    try:
        import pynvml
    except ImportError:
        return Devices()
    return _probe_with(pynvml, environment)


def _is_driver_installed() -> bool:
    """Whether there is the library that pynvml, which takes a while to import, looks for."""
    if sys.platform != "linux" or "pynvml" in sys.modules:
        return True
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return True


def _probe_with(api: ModuleType, environment: Mapping[str, str]) -> Devices:
    try:
        api.nvmlInit()
    except api.NVMLError:
        return Devices()
    devices = Devices(api, reasons=_throttle_reasons(api), counters=PerformanceCounters(api))
    try:
        driver = api.nvmlSystemGetDriverVersion()
        devices.driver = driver.decode() if isinstance(driver, bytes) else str(driver)
        devices.visible = _visible_devices(api, environment, devices.lost)
    except api.NVMLError:
        devices.visible = []
    return devices


def _throttle_reasons(api: ModuleType) -> dict[int, str]:
    """Return the reasons by their bit, whichever of its two names the package has."""
    reasons = {
        prefix + end: reason for prefix in _REASON_PREFIXES for end, reason in THROTTLE_REASONS.items()
    }
    return {getattr(api, name): reason for name, reason in reasons.items() if hasattr(api, name)}


def _visible_devices(api: Any, environment: Mapping[str, str], lost: set[int]) -> list[Device]:
    """Return the devices that CUDA_VISIBLE_DEVICES leaves, all where it says nothing.

    Of those, one that the driver has lost is added to `lost`; the others are watched all the same.

    CUDA counts devices as NVML does where CUDA_DEVICE_ORDER is PCI_BUS_ID, which the protocol sets; in
    another order a number names no device that is known, and all of them are watched.
    """
    every = _device_handles(api)
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    same_order = environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or len(every) == 1
    words = [word.strip() for word in visible.split(",")] if visible is not None else None
    if words is None or (not same_order and any(word.isdigit() for word in words)):
        lost |= {index for index, handle in every.items() if handle is None}
        return [_make_device(api, index, handle) for index, handle in every.items() if handle is not None]
    return list(_named_devices(api, every, words, lost))


def _device_handles(api: Any) -> dict[int, Any]:
    """Return each device's handle by NVML's index, None for one that can't be had: it fell off the bus.

    NVML also counts those that this process may not use, as a batch system's control groups have it. CUDA
    doesn't: they are left out.
    """
    handles: dict[int, Any] = {}
    for index in range(api.nvmlDeviceGetCount()):
        try:
            handles[index] = api.nvmlDeviceGetHandleByIndex(index)
        except api.NVMLError_NoPermission:
            continue
        except api.NVMLError:
            handles[index] = None
    return handles


def _read_uuid(api: Any, handle: Any) -> str:
    """Return a device's or an instance's UUID, nothing where it can't be read."""
    with contextlib.suppress(api.NVMLError):
        return _decode_text(api.nvmlDeviceGetUUID(handle)) if handle is not None else ""
    return ""


def _without_prefix(identity: str) -> str:
    return identity.removeprefix("GPU-").removeprefix("MIG-").lower()


def _named_devices(
    api: Any, every: Mapping[int, Any], words: Sequence[str], lost: set[int]
) -> Iterator[Device]:
    """Yield the named devices; like CUDA, stop at the first name that is none."""
    numbered = list(every)
    identities = {_read_uuid(api, handle): index for index, handle in every.items()}
    for word in words:
        if word.isdigit() and int(word) < len(numbered):
            index = numbered[int(word)]
            if every[index] is None:
                lost.add(index)
            else:
                yield _make_device(api, index, every[index])
        elif word.startswith("MIG-"):
            part = api.nvmlDeviceGetHandleByUUID(word)
            parent = _decode_text(
                api.nvmlDeviceGetUUID(api.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(part))
            )
            if parent not in identities:
                return
            index = identities[parent]
            yield Device(index, every[index], part, frozenset(map(_without_prefix, (parent, word))))
        else:
            named = [
                index
                for identity, index in identities.items()
                if word.startswith("GPU-") and identity.startswith(word)
            ]
            if len(named) != 1:
                return
            yield _make_device(api, named[0], every[named[0]])


def _make_device(api: Any, index: int, handle: Any) -> Device:
    """Return a device; of one that is divided, CUDA takes the first instance that it sees."""
    part = _first_part(api, handle)
    identities = filter(None, (_read_uuid(api, handle), _read_uuid(api, part)))
    return Device(index, handle, part, frozenset(map(_without_prefix, identities)))


def _first_part(api: Any, handle: Any) -> Any:
    try:
        divided = api.nvmlDeviceGetMigMode(handle)[0] == api.NVML_DEVICE_MIG_ENABLE
    except api.NVMLError:
        divided = False
    for instance in range(api.nvmlDeviceGetMaxMigDeviceCount(handle) if divided else 0):
        with contextlib.suppress(api.NVMLError):
            return api.nvmlDeviceGetMigDeviceHandleByIndex(handle, instance)
    return handle


def _read_milliwatts(api: Any, device: Device) -> float:
    """Return what the device draws right now.

    NVML's power usage is the mean of a second since Ampere, which a short window mistakes for its own. For
    the instant it has a field, which older drivers and devices lack.
    """
    with contextlib.suppress(AttributeError, api.NVMLError):
        field = api.nvmlDeviceGetFieldValues(device.handle, [api.NVML_FI_DEV_POWER_INSTANT])[0]
        if field.nvmlReturn == api.NVML_SUCCESS:
            return float(field.value.uiVal)
    return float(api.nvmlDeviceGetPowerUsage(device.handle))


def _read_millijoules(api: Any, device: Device) -> float:
    return float(api.nvmlDeviceGetTotalEnergyConsumption(device.handle))


def _decode_text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
