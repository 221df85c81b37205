"""A fake NVML without a driver: devices whose readings a test sets, fails or removes.

The names, constants and errors are those of nvidia-ml-py; a test compares them where it is installed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace


class NVMLError(Exception):
    """What every failing call of NVML raises."""


class NVMLError_NotSupported(NVMLError):  # noqa: N801, N818  # NVML's names
    """The device doesn't know the reading."""


class NVMLError_NoPermission(NVMLError):  # noqa: N801, N818
    """The device is somebody else's."""


class NVMLError_GpuIsLost(NVMLError):  # noqa: N801, N818
    """The device fell off the bus."""


class NVMLError_FunctionNotFound(NVMLError):  # noqa: N801, N818
    """The driver is older than the package."""


class NVMLError_LibraryNotFound(NVMLError):  # noqa: N801, N818
    """There is no driver."""


@dataclass
class Instance:
    """One MIG instance of a device."""

    uuid: str
    used: int = 2**28
    processes: list[int] = field(default_factory=list)


@dataclass
class Device:
    """One device. `unsupported` names the calls that it doesn't know; a lost one answers none.

    One that is `forbidden` is counted, and has no handle.
    """

    gpu: int = 80
    used: int = 2**30
    sm_clock: int = 1700
    memory_clock: int = 2600
    milliwatts: int = 250_000
    instant_milliwatts: int | None = None
    temperature: int = 61
    millijoules: int = 5_000_000
    tensor_percent: float = 40.0
    bandwidth_percent: float = 70.0
    reasons: int = 0
    uuid: str = "GPU-0000"
    processes: list[int] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)
    unsupported: set[str] = field(default_factory=set)
    lost: bool = False
    forbidden: bool = False
    compute_mode: int = 0
    persistence: int = 1
    highest_clock: int = 1980
    application_clock: int = 1755
    power_cap: int = 700_000
    error_correction: int = 1
    uncorrected_errors: int = 0


@dataclass
class Sample:
    """What a sample of the performance counters remembers: the device, once it was taken."""

    device: Device | None = None


class MetricsGet:
    """What two samples are compared with."""

    def __init__(self) -> None:
        self.version = self.numMetrics = 0
        self.sample1 = self.sample2 = Sample()
        self.metrics = [SimpleNamespace(metricId=0, nvmlReturn=1, value=0.0) for _ in range(4)]


class FakeNvml:
    """Stands in for the module `pynvml`. An old driver knows throttle reasons by their old name only."""

    NVMLError = NVMLError
    NVMLError_NotSupported = NVMLError_NotSupported
    NVMLError_NoPermission = NVMLError_NoPermission
    NVMLError_GpuIsLost = NVMLError_GpuIsLost
    NVMLError_FunctionNotFound = NVMLError_FunctionNotFound
    NVML_SUCCESS = 0
    NVML_FI_DEV_POWER_INSTANT = 186
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_VOLATILE_ECC = 0
    NVML_TEMPERATURE_GPU = 0
    NVML_DEVICE_MIG_ENABLE = 1
    nvmlClocksEventReasonGpuIdle = 0x01  # noqa: N815
    nvmlClocksEventReasonSwPowerCap = 0x04  # noqa: N815
    nvmlClocksEventReasonSwThermalSlowdown = 0x20  # noqa: N815
    nvmlClocksThrottleReasonHwSlowdown = 0x08  # noqa: N815
    nvmlClocksThrottleReasonHwThermalSlowdown = 0x40  # noqa: N815
    nvmlClocksThrottleReasonHwPowerBrakeSlowdown = 0x80  # noqa: N815

    NVML_GPM_METRIC_ANY_TENSOR_UTIL = 5
    NVML_GPM_METRIC_DRAM_BW_UTIL = 10
    NVML_GPM_METRICS_GET_VERSION = 1
    c_nvmlGpmMetricsGet_t = MetricsGet  # noqa: N815

    def __init__(self, devices: list[Device], *, driver: bool = True, old_driver: bool = False) -> None:
        self.devices = devices
        self.driver = driver
        self.old_driver = old_driver
        self.closed = False
        self.samples = 0

    def nvmlInit(self) -> None:  # noqa: N802
        if not self.driver:
            raise NVMLError_LibraryNotFound("library not found")

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.closed = True

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.devices)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Device:  # noqa: N802
        self._answer(self.devices[index], "handle", 0)
        if self.devices[index].forbidden:
            raise NVMLError_NoPermission("outside the control group")
        return self.devices[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Device | Instance:  # noqa: N802
        instances = (instance for device in self.devices for instance in device.instances)
        parts: list[Device | Instance] = [*self.devices, *instances]
        named = [part for part in parts if part.uuid == uuid]
        if not named:
            raise NVMLError("not found")
        return named[0]

    def nvmlDeviceGetUUID(self, device: Device) -> str:  # noqa: N802
        return device.uuid

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "550.54.15"

    def nvmlDeviceGetMigMode(self, device: Device) -> list[int]:  # noqa: N802
        return [int(bool(device.instances)), 0]

    def nvmlDeviceGetMaxMigDeviceCount(self, _device: Device) -> int:  # noqa: N802
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: Device, index: int) -> Instance:  # noqa: N802
        if index >= len(device.instances):
            raise NVMLError("not found")
        return device.instances[index]

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, part: Instance) -> Device:  # noqa: N802
        return next(device for device in self.devices if part in device.instances)

    def nvmlDeviceGetUtilizationRates(self, device: Device) -> SimpleNamespace:  # noqa: N802
        if device.instances:
            raise NVMLError_NotSupported("not of a divided device")
        return SimpleNamespace(gpu=self._answer(device, "utilization", device.gpu))

    def nvmlDeviceGetMemoryInfo(self, part: Device | Instance) -> SimpleNamespace:  # noqa: N802
        used = self._answer(part, "memory", part.used) if isinstance(part, Device) else part.used
        return SimpleNamespace(used=used)

    def nvmlDeviceGetClockInfo(self, device: Device, clock: int) -> int:  # noqa: N802
        return self._answer(device, "clock", device.sm_clock if clock == 1 else device.memory_clock)

    def nvmlDeviceGetMaxClockInfo(self, device: Device, _clock: int) -> int:  # noqa: N802
        return self._answer(device, "highest clock", device.highest_clock)

    def nvmlDeviceGetApplicationsClock(self, device: Device, _clock: int) -> int:  # noqa: N802
        return self._answer(device, "application clock", device.application_clock)

    def nvmlDeviceGetComputeMode(self, device: Device) -> int:  # noqa: N802
        return self._answer(device, "compute mode", device.compute_mode)

    def nvmlDeviceGetPersistenceMode(self, device: Device) -> int:  # noqa: N802
        return self._answer(device, "persistence", device.persistence)

    def nvmlDeviceGetPowerManagementLimit(self, device: Device) -> int:  # noqa: N802
        return self._answer(device, "power cap", device.power_cap)

    def nvmlDeviceGetPowerManagementDefaultLimit(self, device: Device) -> int:  # noqa: N802
        return self._answer(device, "power cap", 700_000)

    def nvmlDeviceGetEccMode(self, device: Device) -> list[int]:  # noqa: N802
        mode = self._answer(device, "error correction", device.error_correction)
        return [mode, mode]

    def nvmlDeviceGetTotalEccErrors(self, device: Device, _kind: int, _counter: int) -> int:  # noqa: N802
        return self._answer(device, "error correction", device.uncorrected_errors)

    def nvmlDeviceGetPowerUsage(self, device: Device) -> int:  # noqa: N802
        return self._answer(device, "power", device.milliwatts)

    def nvmlDeviceGetFieldValues(self, device: Device, fields: list[int]) -> list[SimpleNamespace]:  # noqa: N802
        self._answer(device, "fields", 0)
        known = device.instant_milliwatts is not None and fields == [self.NVML_FI_DEV_POWER_INSTANT]
        value = SimpleNamespace(uiVal=device.instant_milliwatts or 0)
        return [SimpleNamespace(nvmlReturn=self.NVML_SUCCESS if known else 3, value=value)]

    def nvmlDeviceGetTotalEnergyConsumption(self, device: Device) -> int:  # noqa: N802
        return self._answer(device, "energy", device.millijoules)

    def nvmlGpmQueryDeviceSupport(self, device: Device) -> SimpleNamespace:  # noqa: N802
        known = self._answer(device, "counters' support", 1) if not device.lost else 1
        return SimpleNamespace(isSupportedDevice=known * int("counters" not in device.unsupported))

    def nvmlGpmSampleAlloc(self) -> Sample:  # noqa: N802
        self.samples += 1
        return Sample()

    def nvmlGpmSampleFree(self, _sample: Sample) -> None:  # noqa: N802
        self.samples -= 1

    def nvmlGpmSampleGet(self, device: Device, sample: Sample) -> Sample:  # noqa: N802
        self._answer(device, "counters", 0)
        sample.device = device
        return sample

    def nvmlGpmMetricsGet(self, asked: MetricsGet) -> MetricsGet:  # noqa: N802
        device = asked.sample2.device
        if device is None or asked.sample1.device is not device or asked.version != 1:
            raise NVMLError("invalid argument")
        values = {5: device.tensor_percent, 10: device.bandwidth_percent}
        for row in asked.metrics[: asked.numMetrics]:
            row.value, row.nvmlReturn = values[row.metricId], 0
        return asked

    def nvmlDeviceGetTemperature(self, device: Device, _sensor: int) -> int:  # noqa: N802
        return self._answer(device, "temperature", device.temperature)

    def nvmlDeviceGetCurrentClocksEventReasons(self, device: Device) -> int:  # noqa: N802
        if self.old_driver:
            raise NVMLError_FunctionNotFound("no such function")
        return self._answer(device, "reasons", device.reasons)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, device: Device) -> int:  # noqa: N802
        return self._answer(device, "reasons", device.reasons)

    def nvmlDeviceGetComputeRunningProcesses(self, part: Device | Instance) -> list[SimpleNamespace]:  # noqa: N802
        if isinstance(part, Device):
            self._answer(part, "processes", 0)
        return [SimpleNamespace(pid=pid) for pid in part.processes]

    def _answer(self, device: Device, call: str, value: int) -> int:
        # A handle that was got before it was lost is had for ever.
        if device.lost and call != "handle":
            raise NVMLError_GpuIsLost("fell off the bus")
        if call in device.unsupported:
            raise NVMLError_NotSupported(f"{call} can't be read")
        return value
