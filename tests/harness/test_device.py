"""The CUDA side against a fake of torch's events; what only a device can show is not claimed here."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from paceline.measured import device
from paceline.measured.timing import Timing


class Cuda:
    """A device whose clock goes one millisecond further with every recorded event."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits = 0

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def synchronize(self) -> None:
        self.waits += 1

    def max_memory_allocated(self) -> int:
        return 1000

    def max_memory_reserved(self) -> int:
        return 2000

    def Event(self, enable_timing: bool) -> Any:  # noqa: N802  # torch's name
        assert enable_timing
        return Event(self)


class Event:
    def __init__(self, cuda: Cuda) -> None:
        self.cuda = cuda
        self.at = 0.0

    def record(self) -> None:
        self.cuda.now += 1.0
        self.at = self.cuda.now

    def elapsed_time(self, end: "Event") -> float:
        return end.at - self.at


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    found = Cuda()
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=found))  # type: ignore[arg-type]
    return found


def loop(steps: int) -> tuple[Timing, list[int]]:
    found = Timing(2, steps, lambda _: None)
    waits = []
    for _ in found.steps(range(10**6)):
        with found.phase("learn"), found.phase("backward"):
            pass
        waits.append(sys.modules["torch"].cuda.waits)
    return found, waits


def test_phases_have_device_time_per_step(cuda: Cuda) -> None:
    found, _ = loop(5)
    rows = {row["path"]: row["device_total"] for row in found.result()["phases"]}
    # Each step records four events, a millisecond apart.
    assert rows == {
        "learn": pytest.approx(0.003),
        "learn/backward": pytest.approx(0.001),
        "(unattributed)": None,
    }


def test_no_step_waits_for_the_device(cuda: Cuda) -> None:
    _, waits = loop(5)
    # Once where the window opens; the second wait follows its last step.
    assert waits == [0, 0, 1, 1, 1, 1, 1]
    assert cuda.waits == 2


def test_long_windows_record_a_bounded_number_of_events(cuda: Cuda) -> None:
    found, _ = loop(1000)
    assert found.device._sampled == device.SAMPLED_STEPS
    assert len(found.device._pairs["learn"]) == device.SAMPLED_STEPS


def test_device_memory_is_reported(cuda: Cuda) -> None:
    assert loop(3)[0].result()["device_memory"] == {"allocated": 1000, "reserved": 2000}


def test_without_torch_there_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert not device.used()
    assert device.memory() is None
