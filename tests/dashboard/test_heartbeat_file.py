from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from celery import Celery

from dashboard.heartbeat_file import keep_heartbeat_file, touch_file
from tests.processes import CHECKOUT, running_worker
from tests.workers.waiting import wait_until


@pytest.fixture
def environment(site_environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    told = {"PACELINE_HOME": str(tmp_path / "home"), "PACELINE_HEARTBEAT_FILE": str(tmp_path / "heartbeat")}
    return {**site_environment, **told}


def test_a_worker_touches_its_file_again_and_again(environment: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "heartbeat"
    with running_worker(environment, "sweeps", log=tmp_path / "worker.log"):
        wait_until(file.exists)
        file.unlink()
        wait_until(file.exists, 20)


def test_the_scheduler_touches_it_when_it_has_sent(environment: dict[str, str], tmp_path: Path) -> None:
    command = [*(sys.executable, "-m", "celery", "--quiet", "-A", "workers.site.app", "beat")]
    beat = subprocess.Popen([*command, "--scheduler", "celery.beat:Scheduler"], cwd=CHECKOUT, env=environment)
    try:
        wait_until((tmp_path / "heartbeat").exists, 40)
    finally:
        beat.terminate()
        beat.wait(20)


def test_without_a_path_nothing_is_added() -> None:
    app = Celery("plain", set_as_current=False)
    keep_heartbeat_file(app, "")
    assert app.steps["worker"] == set()


def test_a_file_that_cannot_be_touched_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    touch_file(tmp_path / "nowhere" / "heartbeat")
    assert "nowhere/heartbeat can't be touched: No such file or directory" in caplog.text
