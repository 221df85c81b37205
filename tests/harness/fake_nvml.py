"""A whole NVML that no driver stands behind: devices whose readings a test sets, fails or takes away."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace


class NVMLError(Exception):
    """What every failing call of NVML raises."""


@dataclass
class Device:
    """One device. `unsupported` names the calls that it doesn't know; a lost one answers none."""

    gpu: int = 80
    used: int = 2**30
    sm_clock: int = 1700
    memory_clock: int = 2600
    milliwatts: int = 250_000
    temperature: int = 61
    reasons: int = 0
    processes: list[int] = field(default_factory=list)
    unsupported: set[str] = field(default_factory=set)
    lost: bool = False


class FakeNvml:
    """Stands in for the module `pynvml`."""

    NVMLError = NVMLError
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, devices: list[Device], *, driver: bool = True) -> None:
        self.devices = devices
        self.driver = driver
        self.closed = False

    def nvmlInit(self) -> None:  # noqa: N802  # NVML's names
        if not self.driver:
            raise NVMLError("library not found")

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.closed = True

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.devices)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Device:  # noqa: N802
        return self.devices[index]

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "550.54.15"

    def nvmlDeviceGetUtilizationRates(self, device: Device) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(gpu=self._answer(device, "utilization", device.gpu))

    def nvmlDeviceGetMemoryInfo(self, device: Device) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(used=self._answer(device, "memory", device.used))

    def nvmlDeviceGetClockInfo(self, device: Device, clock: int) -> int:  # noqa: N802
        return self._answer(device, "clock", device.sm_clock if clock == 1 else device.memory_clock)

    def nvmlDeviceGetPowerUsage(self, device: Device) -> int:  # noqa: N802
        return self._answer(device, "power", device.milliwatts)

    def nvmlDeviceGetTemperature(self, device: Device, _sensor: int) -> int:  # noqa: N802
        return self._answer(device, "temperature", device.temperature)

    def nvmlDeviceGetCurrentClocksEventReasons(self, device: Device) -> int:  # noqa: N802
        return self._answer(device, "reasons", device.reasons)

    def nvmlDeviceGetComputeRunningProcesses(self, device: Device) -> list[SimpleNamespace]:  # noqa: N802
        self._answer(device, "processes", 0)
        return [SimpleNamespace(pid=pid) for pid in device.processes]

    def _answer(self, device: Device, call: str, value: int) -> int:
        if device.lost or call in device.unsupported:
            raise NVMLError(f"{call} can't be read")
        return value
