"""The machine that measures: what it is, and its lock."""

from __future__ import annotations

import os
import platform
import shutil
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paceline.measured.fingerprint import memory_bytes, operating_system, processor_model
from paceline.watching import nvml

from dashboard.repositories import safe_name, try_lock

# Of a mask of cores, as NVML gives it.
WORD_BITS = 64


@dataclass(frozen=True)
class Gpu:
    """One device as its driver names it."""

    name: str
    memory_bytes: int


@dataclass(frozen=True)
class Fingerprint:
    """What a result depends on beside the code; None where the machine does not tell."""

    cpu_model: str | None
    cpu_count: int | None
    memory_bytes: int | None
    gpus: tuple[Gpu, ...]
    driver: str | None
    os: str
    kernel: str

    def as_dict(self) -> dict[str, Any]:
        """As JSON keeps it."""
        return {**asdict(self), "gpus": [asdict(gpu) for gpu in self.gpus]}


def lock_machine(home: Path, machine: str) -> AbstractContextManager[int | None]:
    """The machine for one measurement alone: a lock's file descriptor, or None where it is taken.

    All workers of a machine share one home, so however many there are, one measures at a time.
    """
    return try_lock(home / "locks" / f"{safe_name(machine)}.lock")


def free_disk_bytes(home: Path) -> int:
    """What is left on the disk of the host's home."""
    return shutil.disk_usage(home).free


def take_fingerprint() -> Fingerprint:
    """The machine as it is now."""
    gpus, driver = list_gpus()
    return Fingerprint(
        cpu_model=processor_model() or platform.processor() or None,
        # As many as this process may use: fewer than the host has, in a container with a CPU set.
        cpu_count=len(os.sched_getaffinity(0)),
        memory_bytes=memory_bytes(),
        gpus=gpus,
        driver=driver,
        os=operating_system(),
        kernel=platform.release(),
    )


def list_gpus() -> tuple[tuple[Gpu, ...], str | None]:
    """The GPUs that measured code may use and the driver's version; none where NVML or its driver is absent.

    As the harness finds them, by CUDA_VISIBLE_DEVICES; of one that MIG divides, the part.
    """
    devices = nvml.probe_devices({"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **os.environ})
    try:
        gpus = (read_gpu(devices.api, device.part) for device in devices.visible)
        return tuple(gpu for gpu in gpus if gpu is not None), devices.driver
    finally:
        devices.close()


def read_gpu(api: Any, part: Any) -> Gpu | None:
    """One device, or a part of it; None where it falls off the bus meanwhile."""
    try:
        return Gpu(decode_text(api.nvmlDeviceGetName(part)), int(api.nvmlDeviceGetMemoryInfo(part).total))
    except api.NVMLError:
        return None


def list_near_cores() -> list[tuple[int, ...]]:
    """For each GPU the cores near to it, as the kernel counts them; empty where NVML isn't there."""
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    words = -(-(os.cpu_count() or 1) // WORD_BITS)
    near = []
    try:
        for index in range(pynvml.nvmlDeviceGetCount()):
            try:
                mask = pynvml.nvmlDeviceGetCpuAffinity(pynvml.nvmlDeviceGetHandleByIndex(index), words)
            except pynvml.NVMLError:
                mask = [2**WORD_BITS - 1] * words
            bits = sum(int(word) << (WORD_BITS * place) for place, word in enumerate(mask))
            near.append(tuple(core for core in range(words * WORD_BITS) if bits >> core & 1))
        return near
    except pynvml.NVMLError:
        return []
    finally:
        pynvml.nvmlShutdown()


def decode_text(value: str | bytes) -> str:
    """Older bindings return bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
