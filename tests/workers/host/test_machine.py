from __future__ import annotations

import builtins
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from workers.host import machine


class FakeNvml:
    """Two devices, as NVML tells of them; the outer edge of this room."""

    class NVMLError(Exception):
        pass

    def __init__(self, *, driver: bool = True) -> None:
        self.driver = driver

    def nvmlInit(self) -> None:  # noqa: N802
        if not self.driver:
            raise self.NVMLError

    def nvmlShutdown(self) -> None:  # noqa: N802
        pass

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetName(self, handle: int) -> str | bytes:  # noqa: N802
        return b"H200" if handle else "H200"

    def nvmlDeviceGetMemoryInfo(self, _handle: int) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(total=150_000_000_000)

    def nvmlSystemGetDriverVersion(self) -> bytes:  # noqa: N802
        return b"570.86"


def test_devices_and_driver_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    assert machine.list_gpus() == ((machine.Gpu("H200", 150_000_000_000),) * 2, "570.86")


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


def test_the_processors_name_is_read(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Fast 9000 @ 3: GHz\n")
    assert machine.cpu_model(tmp_path / "cpuinfo") == "Fast 9000 @ 3: GHz"


def test_only_one_holds_the_machine(tmp_path: Path) -> None:
    with machine.lock_machine(tmp_path, "gpu-1") as first, machine.lock_machine(tmp_path, "gpu-1") as second:
        assert first is not None
        assert second is None


def test_two_machines_do_not_wait_for_each_other(tmp_path: Path) -> None:
    with machine.lock_machine(tmp_path, "gpu-1") as first, machine.lock_machine(tmp_path, "gpu-2") as second:
        assert None not in (first, second)
