import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from paceline.watching import nvml, tree
from paceline.watching.nvml import Devices
from paceline.watching.sampler import VALUES_LIMIT, Sampler
from paceline.watching.tree import Tree

from .fake_nvml import Device, FakeNvml


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def devices(*found: Device, monkeypatch: pytest.MonkeyPatch) -> Devices:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(list(found)))
    return nvml.probe()


def sampler(clock: Clock, found: Devices | None = None) -> Sampler:
    return Sampler(Tree(os.getpid()), found or Devices(), clock.now, 0.1, clock)


def take(sampled: Sampler, clock: Clock, *moments: float) -> None:
    for moment in moments:
        clock.now = 100.0 + moment
        sampled.sample()


def channel(sampled: Sampler, name: str) -> dict[str, object]:
    return next(row for row in sampled.channels((0.0, 10.0)) if row["channel"] == name)


def test_a_missed_slot_is_none_and_moves_nothing(clock: Clock) -> None:
    sampled = sampler(clock)
    take(sampled, clock, 0.1, 0.2, 0.52)
    values = sampled.series["threads", None]
    assert [value is None for value in values] == [True, False, False, True, True, False]


def test_the_next_slot_is_on_the_grid(clock: Clock) -> None:
    sampled = sampler(clock)
    clock.now = 100.0 + 0.27
    assert sampled.until_next() == pytest.approx(0.03)


def test_a_device_is_read(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled = sampler(clock, devices(Device(milliwatts=301_500), monkeypatch=monkeypatch))
    take(sampled, clock, 0.1)
    row = channel(sampled, "gpu_power")
    assert (row["device"], row["unit"], row["mean"]) == (0, "W", 301.5)


def test_an_unsupported_reading_is_none_and_not_zero(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled = sampler(clock, devices(Device(unsupported={"power"}), monkeypatch=monkeypatch))
    take(sampled, clock, 0.1)
    assert channel(sampled, "gpu_power")["values"] == [None, None]
    assert channel(sampled, "gpu_power")["mean"] is None
    assert channel(sampled, "gpu_temperature")["mean"] == 61


def test_a_device_that_is_lost_leaves_a_gap(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(gpu=50)
    sampled = sampler(clock, devices(device, monkeypatch=monkeypatch))
    take(sampled, clock, 0.1)
    device.lost = True
    take(sampled, clock, 0.2)
    row = channel(sampled, "gpu_utilization")
    assert (row["values"], row["mean"]) == ([None, 50.0, None], 50.0)


def test_the_idle_share_is_told(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(gpu=100)
    sampled = sampler(clock, devices(device, monkeypatch=monkeypatch))
    take(sampled, clock, 0.1, 0.2, 0.3)
    device.gpu = 0
    take(sampled, clock, 0.4)
    row = channel(sampled, "gpu_utilization")
    assert (row["mean"], row["peak"], row["idle_share"]) == (75.0, 100.0, 0.25)


def test_throttling_and_co_tenants_are_remembered(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(reasons=0x20 | 0x01, processes=[os.getpid(), 4_000_000])
    sampled = sampler(clock, devices(device, monkeypatch=monkeypatch))
    take(sampled, clock, 0.1)
    device.reasons, device.processes = 0, []
    take(sampled, clock, 0.2)
    assert sampled.throttling == {(0, "temperature")}
    assert sampled.strangers == {(0, 4_000_000)}


def test_no_driver_means_no_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml([Device()], driver=False))
    assert nvml.probe().handles == []


def test_the_driver_is_known_and_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    found = devices(Device(), Device(), monkeypatch=monkeypatch)
    found.close()
    assert (found.driver, len(found.handles), found.api.closed) == ("550.54.15", 2, True)


def test_a_long_series_is_thinned(clock: Clock) -> None:
    sampled = sampler(clock)
    sampled.series["memory", None] = [1.0, 3.0, None, None] * VALUES_LIMIT
    row = channel(sampled, "memory")
    assert row["interval"] == pytest.approx(0.4)
    assert row["values"] == [2.0] * VALUES_LIMIT


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits for a child of its own, which burns processor time."""
    burn = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    with subprocess.Popen([sys.executable, "-c", burn], start_new_session=True) as process:
        yield process
        tree.end(process.pid)


def wait_for_child(pid: int) -> None:
    deadline = time.monotonic() + 20
    while not tree.descendants(pid):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_tree_counts_its_children(busy: subprocess.Popen[bytes]) -> None:
    wait_for_child(busy.pid)
    read = Tree(busy.pid)
    first = read.read()
    time.sleep(0.3)
    second = read.read()
    assert first is not None
    assert second is not None
    assert first.cpu is None
    assert second.cpu is not None
    assert second.cpu > 0.01
    assert second.threads == 2


def test_proc_and_psutil_agree(busy: subprocess.Popen[bytes]) -> None:
    wait_for_child(busy.pid)
    assert tree._proc_descendants(busy.pid) == tree._psutil_descendants(busy.pid)
    ours, theirs = tree._proc_usage(os.getpid()), tree._psutil_usage(os.getpid())
    assert ours is not None
    assert theirs is not None
    assert ours.threads == theirs.threads
    assert ours.resident == pytest.approx(theirs.resident, rel=0.05)


def test_a_process_that_is_gone_reads_none() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert Tree(process.pid).read() is None


def test_a_process_without_memory_is_gone(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled = sampler(clock)
    take(sampled, clock, 0.1)
    monkeypatch.setattr(tree, "_USAGE", lambda _pid: tree.Usage(cpu=1.0, resident=0, threads=1))
    take(sampled, clock, 0.2)
    assert Tree(os.getpid()).read() is None
    assert len(sampled.series["memory", None]) == 2


def test_a_zombie_reads_none() -> None:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert Tree(process.pid).read() is None
        assert tree._proc_usage(process.pid) is None
