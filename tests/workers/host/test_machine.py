from __future__ import annotations

import builtins
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from workers.host import machine


class FakeNvml:
    """Two devices, the second of them divided, as NVML tells of them; the outer edge of this room."""

    class NVMLError(Exception):
        pass

    class NVMLError_NoPermission(NVMLError):  # noqa: N801, N818
        pass

    def __init__(self, *, driver: bool = True, lost: int | None = None) -> None:
        self.driver = driver
        self.lost = lost

    def nvmlInit(self) -> None:  # noqa: N802
        if not self.driver:
            raise self.NVMLError

    def nvmlShutdown(self) -> None:  # noqa: N802
        pass

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        if index == self.lost:
            raise self.NVMLError
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return f"GPU-{handle}a"

    def nvmlDeviceGetHandleByUUID(self, _uuid: str) -> int:  # noqa: N802
        return 7

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, _part: int) -> int:  # noqa: N802
        return 1

    def nvmlDeviceGetMigMode(self, _handle: int) -> list[int]:  # noqa: N802
        raise self.NVMLError

    def nvmlDeviceGetName(self, handle: int) -> str | bytes:  # noqa: N802
        return ("H200", b"H100")[handle] if handle < 7 else "H100 MIG 1g.10gb"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(total=150_000_000_000 if handle < 7 else 10_000_000_000)

    def nvmlSystemGetDriverVersion(self) -> bytes:  # noqa: N802
        return b"570.86"


def test_devices_and_driver_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    h200, h100 = (machine.Gpu(name, 150_000_000_000) for name in ("H200", "H100"))
    assert machine.list_gpus() == ((h200, h100), "570.86")


@pytest.mark.parametrize(
    ("visible", "names"),
    [
        ("", []),
        ("-1", []),
        ("1", ["H100"]),
        ("1, 0", ["H100", "H200"]),
        ("GPU-0a", ["H200"]),
        ("MIG-5", ["H100 MIG 1g.10gb"]),
    ],
)
def test_a_fingerprint_tells_the_gpus_of_its_slot(
    monkeypatch: pytest.MonkeyPatch, visible: str, names: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    gpus, driver = machine.list_gpus()
    assert ([gpu.name for gpu in gpus], driver) == (names, "570.86")


def test_a_lost_device_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(lost=0))
    gpus, driver = machine.list_gpus()
    assert ([gpu.name for gpu in gpus], driver) == (["H100"], "570.86")


def test_without_a_driver_there_are_no_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(driver=False))
    assert machine.list_gpus() == ((), None)


def test_without_the_bindings_there_are_no_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_nvml(name: str, *arguments: Any, **more: Any) -> Any:
        if name == "pynvml":
            raise ImportError(name)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without_nvml)
    assert machine.list_gpus() == ((), None)


def test_the_fingerprint_is_json_with_every_part() -> None:
    fingerprint = machine.take_fingerprint().as_dict()
    assert set(fingerprint) == {"cpu_model", "cpu_count", "memory_bytes", "gpus", "driver", "os", "kernel"}
    assert fingerprint["memory_bytes"] > 0
    assert fingerprint["cpu_count"] >= 1


def test_only_one_holds_the_machine(tmp_path: Path) -> None:
    with machine.lock_machine(tmp_path, "gpu-1") as first, machine.lock_machine(tmp_path, "gpu-1") as second:
        assert first is not None
        assert second is None


def test_two_machines_do_not_wait_for_each_other(tmp_path: Path) -> None:
    with machine.lock_machine(tmp_path, "gpu-1") as first, machine.lock_machine(tmp_path, "gpu-2") as second:
        assert None not in (first, second)
