"""Several GPUs, or parts of the cores, are several machines: each pinned to what is its own."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest
from pytest_django.live_server_helper import LiveServer

from dashboard import hosts, runs
from dashboard.models import Machine
from tests.processes import running_agent
from tests.workers.waiting import wait_until
from workers.host import machine, slots
from workers.host.configuration import ConfigurationError
from workers.host.slots import Slot, plan_slots, split_cores


@pytest.fixture
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


def have_gpus(monkeypatch: pytest.MonkeyPatch, near: list[tuple[int, ...]]) -> None:
    monkeypatch.setattr(slots, "list_near_cores", lambda: near)


def test_a_host_without_gpus_is_one_machine(eight_cores: None, monkeypatch: pytest.MonkeyPatch) -> None:
    have_gpus(monkeypatch, [])
    assert plan_slots("gpu", None) == [Slot("gpu", None, tuple(range(8)))]


def test_each_gpu_gets_cores_that_are_near_to_it(eight_cores: None, monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = (0, 1, 2, 3), (4, 5, 6, 7)
    have_gpus(monkeypatch, [left, left, right, right])
    assert plan_slots("gpu", None) == [
        Slot("gpu-0", 0, (0, 1)),
        Slot("gpu-1", 1, (2, 3)),
        Slot("gpu-2", 2, (4, 5)),
        Slot("gpu-3", 3, (6, 7)),
    ]


def test_one_gpu_has_the_whole_host(eight_cores: None, monkeypatch: pytest.MonkeyPatch) -> None:
    have_gpus(monkeypatch, [(0, 1)])
    assert plan_slots("gpu", None) == [Slot("gpu", 0, tuple(range(8)))]


def test_slots_without_a_gpu_share_the_cores(eight_cores: None, monkeypatch: pytest.MonkeyPatch) -> None:
    have_gpus(monkeypatch, [])
    assert [slot.cores for slot in plan_slots("cpu", 3)] == [(0, 1, 2), (3, 4, 5), (6, 7)]


def test_a_host_without_a_site_says_how_to_join(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"--site and --code once, or make host SITE=.* CODE="):
        slots.join_missing_slots(tmp_path, [Slot("gpu", None, (0,))], "", "")


def test_more_slots_than_cores_are_refused(eight_cores: None, monkeypatch: pytest.MonkeyPatch) -> None:
    have_gpus(monkeypatch, [])
    with pytest.raises(ConfigurationError, match="9 slots need as many cores, and this host gives 8"):
        plan_slots("cpu", 9)


def test_no_core_is_in_two_slots() -> None:
    """Where a GPU is near to all cores, beside one that is near to few."""
    shares = split_cores(range(6), [(0, 1), range(6)])
    assert shares == [(0, 1), (2, 3, 4, 5)]


def test_a_host_without_nvml_has_no_near_cores() -> None:
    assert machine.list_near_cores() == []


def test_one_code_lets_all_slots_join_and_each_stays_on_its_cores(
    live_server: LiveServer, transactional_db: None, tmp_path: Path
) -> None:
    code = hosts.create_join_code(runs.pool_named("default"), "a test")
    usable = sorted(os.sched_getaffinity(0))
    with running_agent(tmp_path / "home", live_server.url, code, "--slots=2", log=tmp_path / "log") as agent:
        wait_until(lambda: Machine.objects.filter(protocol__isnull=False).count() == 2)
        wait_until(lambda: agent.output.count(" ready.") == 2)
        assert sorted(Machine.objects.values_list("name", flat=True)) == ["gpu-1-0", "gpu-1-1"]
        workers = [
            process
            for process in psutil.Process(agent.process.pid).children(recursive=True)
            if "celery" in process.cmdline()
        ]
        pinned = {core for worker in workers for core in worker.cpu_affinity()}
        assert {len(worker.cpu_affinity()) for worker in workers} == {len(usable) // 2}
        assert pinned == set(usable)
        assert Machine.objects.first().fingerprint["cpu_count"] == len(usable) // 2  # type: ignore[union-attr]
    # All has ended with it, and what was pinned were these processes alone.
    assert not any(worker.is_running() for worker in workers)
    assert sorted(os.sched_getaffinity(0)) == usable
