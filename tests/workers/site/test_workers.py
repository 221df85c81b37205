"""Real worker processes: they take messages, say that they live, and may be killed at any time."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.db import connection
from pytest_django.live_server_helper import LiveServer

from dashboard import dispatch, hosts, runs
from dashboard.models import Document, Heartbeat, Machine, Run
from tests.processes import running_agent, running_worker
from tests.workers.conftest import TRAIN, Requested
from tests.workers.host.execution.test_run_executor import processes_in, read_state
from tests.workers.waiting import wait_until

GATE = """
import time
from pathlib import Path
from typing import Any

while not Path({path!r}).exists():
    time.sleep(0.02)
"""


def test_a_service_worker_lives_and_goes_on_after_the_database_was_away(
    site_environment: dict[str, str], tmp_path: Path
) -> None:
    scheduler = Heartbeat.objects.filter(name="scheduler")
    ours = connected_backends()
    with running_worker(site_environment, "service", "fetches", log=tmp_path / "worker.log") as worker:
        for part in ("service worker", "fetch worker"):
            wait_until(partial(Heartbeat.objects.filter(name=part).exists))
        dispatch.send_task(dispatch.SCHEDULER_HEARTBEAT)
        wait_until(scheduler.exists)
        scheduler.delete()
        with connection.cursor() as cursor:
            for pid in connected_backends() - ours:
                cursor.execute("SELECT pg_terminate_backend(%s, 30000)", [pid])
        dispatch.send_task(dispatch.SCHEDULER_HEARTBEAT)
        wait_until(scheduler.exists)
        assert "the connection is closed" not in worker.output
    assert Heartbeat.objects.count() == 3


def connected_backends() -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
        return {pid for (pid,) in cursor.fetchall()}


def test_a_host_is_woken_by_a_message_and_claims_once(
    live_server: LiveServer, requested: Requested, home: Path, tmp_path: Path
) -> None:
    code = hosts.create_join_code(runs.pool_named("default"), "a test")
    with running_agent(home, live_server.url, code, log=tmp_path / "host.log") as started:
        assert "is woken by the broker" in started.output
        wait_until(lambda: Machine.objects.filter(name="gpu-1", seen_at__isnull=False))
        run = requested()
        dispatch.wake_workers(run.pool.name, 3)
        wait_until(lambda: read_state(run) == "done")
        assert started.output.count("is claimed") == 1


@pytest.mark.parametrize("victim", ["agent", "its child"])
def test_a_killed_host_loses_no_run_and_stores_one_document(
    live_server: LiveServer, requested: Requested, home: Path, tmp_path: Path, settings: Any, victim: str
) -> None:
    # Without a box, so that what is measured sees the gate.
    settings.PACELINE_LEASE_SECONDS = 2
    gate = tmp_path / "gate"
    run = requested({"train.py": GATE.format(path=str(gate)) + TRAIN})
    code = hosts.create_join_code(run.pool, "a test")
    with running_agent(home, live_server.url, code, log=tmp_path / "first.log", sandbox="off") as first:
        wait_until(lambda: read_state(run) == "measuring" and len(processes_in(home)) > 2)
        if victim == "agent":
            first.kill()
        else:
            os.kill(child_that_measures(first.process.pid), signal.SIGKILL)
        wait_until(lambda: not processes_in(home))
        gate.touch()
        if victim == "agent":
            with running_agent(home, live_server.url, log=tmp_path / "second.log", sandbox="off"):
                wait_until(lambda: read_state(run) == "done")
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
        for child in psutil.Process(pid).children(recursive=True)
        if any("processes/reaper.py" in " ".join(grandchild.cmdline()) for grandchild in child.children())
    )
