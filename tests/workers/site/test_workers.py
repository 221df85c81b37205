"""Real worker processes: they take messages, say that they live, and may be killed at any time."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from dashboard import dispatch, runs
from dashboard.models import Document, Heartbeat, Machine, Run
from tests.processes import running_worker
from tests.workers.conftest import TRAIN, Requested
from tests.workers.host.test_run_executor import processes_in, read_state
from tests.workers.waiting import wait_until

GATE = """
import time
from pathlib import Path

while not Path({path!r}).exists():
    time.sleep(0.02)
"""


@pytest.fixture
def environment(site_environment: dict[str, str], home: Path) -> dict[str, str]:
    """Of a worker whose leases end soon."""
    told = {"PACELINE_HOME": str(home), "PACELINE_MACHINE": "gpu-1", "PACELINE_LEASE_SECONDS": "2"}
    return {**site_environment, **told}


def test_a_worker_says_that_it_lives_and_takes_messages(
    environment: dict[str, str], requested: Requested, tmp_path: Path
) -> None:
    with running_worker(environment, "pool.default", "service", log=tmp_path / "worker.log") as started:
        wait_until(lambda: Machine.objects.filter(name="gpu-1", pool__name="default", seen_at__isnull=False))
        wait_until(lambda: Heartbeat.objects.filter(name="service worker"))
        run = requested()
        dispatch.wake_workers(run.pool.name, 3)
        dispatch.send_task(dispatch.SCHEDULER_HEARTBEAT)
        wait_until(lambda: Heartbeat.objects.filter(name="scheduler"))
        wait_until(lambda: read_state(run) == "done")
        assert started.output.count("is claimed") == 1


@pytest.mark.parametrize("victim", ["worker", "its child"])
def test_a_killed_worker_loses_no_run_and_stores_one_document(
    environment: dict[str, str], requested: Requested, home: Path, tmp_path: Path, victim: str
) -> None:
    gate = tmp_path / "gate"
    run = requested({"train.py": GATE.format(path=str(gate)) + TRAIN})
    with running_worker(environment, "pool.default", log=tmp_path / "first.log") as first:
        wait_until(lambda: read_state(run) == "measuring" and len(processes_in(home)) > 2)
        if victim == "worker":
            first.kill()
        else:
            os.kill(child_that_measures(first.process.pid), signal.SIGKILL)
        wait_until(lambda: not processes_in(home))
        gate.touch()
        if victim == "worker":
            with running_worker(environment, "pool.default", log=tmp_path / "second.log"):
                sweep_until_done(run)
        else:
            sweep_until_done(run)
    assert Run.objects.get(pk=run.pk).attempt == 2
    assert Document.objects.count() == 1


def sweep_until_done(run: Run) -> None:
    """As the scheduler's sweep does, only more often."""

    def swept() -> bool:
        runs.sweep_runs()
        return read_state(run) == "done"

    wait_until(swept)


def child_that_measures(pid: int) -> int:
    """The pool's child is the one whose own child is the reaper."""
    return next(
        child.pid
        for child in psutil.Process(pid).children()
        if any("process_reaper.py" in " ".join(grandchild.cmdline()) for grandchild in child.children())
    )
