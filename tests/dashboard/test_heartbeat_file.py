from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from celery import Celery

from dashboard.heartbeat_file import INTERVAL_SECONDS, keep_heartbeat_file, touch_file
from tests.processes import CHECKOUT
from tests.workers.waiting import wait_until


@pytest.mark.parametrize(
    "process",
    [
        ("worker", "--pool=solo", "--queues=heartbeat", "--without-mingle", "--without-gossip"),
        ("beat", "--scheduler=celery.beat:Scheduler"),
    ],
)
def test_it_is_touched_again_and_again(process: tuple[str, ...], tmp_path: Path) -> None:
    """By a worker from its loop, by the scheduler when it has sent something."""
    file = tmp_path / "heartbeat"
    started = subprocess.Popen(
        [sys.executable, "-m", "celery", "--quiet", "-A", "tests.dashboard.heartbeat_app", *process],
        cwd=CHECKOUT,
        env={**os.environ, "PACELINE_HEARTBEAT_FILE": str(file)},
    )
    try:
        wait_until(file.exists)
        file.unlink()
        wait_until(file.exists)
        assert started.poll() is None
    finally:
        started.kill()
        started.wait()


def test_the_apps_of_site_and_hosts_touch_it_by_themselves() -> None:
    assert INTERVAL_SECONDS == 10
    for source in ("dashboard/dispatch.py", "workers/host/app.py"):
        assert "keep_heartbeat_file(app, " in (CHECKOUT / source).read_text()


def test_without_a_path_nothing_is_added() -> None:
    app = Celery("plain", set_as_current=False)
    keep_heartbeat_file(app, "")
    assert app.steps["worker"] == set()


def test_a_file_that_cannot_be_touched_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    touch_file(tmp_path / "nowhere" / "heartbeat")
    assert "nowhere/heartbeat can't be touched: No such file or directory" in caplog.text
