"""NVIDIA devices through NVML: probed once, sampled often. A missing reading is None, never 0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

THROTTLE_REASONS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "temperature",
    0x40: "temperature (hardware)",
    0x80: "power brake",
}


@dataclass(frozen=True, slots=True)
class Channel:
    """One kind of reading: its unit, and how a device handle gives it."""

    name: str
    unit: str
    read: Callable[[Any, Any], float]


CHANNELS = (
    Channel("gpu_utilization", "%", lambda api, handle: api.nvmlDeviceGetUtilizationRates(handle).gpu),
    Channel("gpu_memory", "bytes", lambda api, handle: api.nvmlDeviceGetMemoryInfo(handle).used),
    Channel("gpu_sm_clock", "MHz", lambda api, handle: api.nvmlDeviceGetClockInfo(handle, api.NVML_CLOCK_SM)),
    Channel(
        "gpu_memory_clock", "MHz", lambda api, handle: api.nvmlDeviceGetClockInfo(handle, api.NVML_CLOCK_MEM)
    ),
    Channel("gpu_power", "W", lambda api, handle: api.nvmlDeviceGetPowerUsage(handle) / 1000),
    Channel(
        "gpu_temperature",
        "°C",
        lambda api, handle: api.nvmlDeviceGetTemperature(handle, api.NVML_TEMPERATURE_GPU),
    ),
)


@dataclass(slots=True)
class Devices:
    """All devices of the machine; empty without a driver."""

    api: Any = None
    handles: list[Any] = field(default_factory=list)
    driver: str | None = None

    def read(self) -> list[dict[str, float | None]]:
        """Return every channel's reading, per device."""
        return [
            {channel.name: self._try(channel.read, handle) for channel in CHANNELS} for handle in self.handles
        ]

    def throttling(self) -> set[tuple[int, str]]:
        """Return (device, reason) for every reason for which a clock is held down right now."""
        found = set()
        for index, handle in enumerate(self.handles):
            bits = int(self._try(_throttle_bits, handle) or 0)
            found |= {(index, reason) for bit, reason in THROTTLE_REASONS.items() if bits & bit}
        return found

    def strangers(self, ours: set[int]) -> set[tuple[int, int]]:
        """Return (device, process id) for the computing processes that aren't ours."""
        found = set()
        for index, handle in enumerate(self.handles):
            try:
                processes = self.api.nvmlDeviceGetComputeRunningProcesses(handle)
            except self.api.NVMLError:
                continue
            found |= {(index, process.pid) for process in processes if process.pid not in ours}
        return found

    def close(self) -> None:
        """Let go of the driver."""
        if self.api is not None:
            self.api.nvmlShutdown()

    def _try(self, read: Callable[[Any, Any], float], handle: Any) -> float | None:
        try:
            return float(read(self.api, handle))
        except self.api.NVMLError:
            return None


def probe() -> Devices:
    """Find the machine's devices; without pynvml or a driver there are none."""
    try:
        import pynvml
    except ImportError:
        return Devices()
    return _probe(pynvml)


def _probe(api: ModuleType) -> Devices:
    try:
        api.nvmlInit()
    except api.NVMLError:
        return Devices()
    try:
        handles = [api.nvmlDeviceGetHandleByIndex(index) for index in range(api.nvmlDeviceGetCount())]
        driver = api.nvmlSystemGetDriverVersion()
    except api.NVMLError:
        return Devices(api)
    return Devices(api, handles, driver.decode() if isinstance(driver, bytes) else str(driver))


def _throttle_bits(api: Any, handle: Any) -> float:
    # Renamed in the driver 535; older packages know the old name only.
    for name in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
        if hasattr(api, name):
            return float(getattr(api, name)(handle))
    return 0.0
