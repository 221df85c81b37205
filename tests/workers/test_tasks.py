from __future__ import annotations

import subprocess
import sys

import pytest

from dashboard import alerts, dispatch, runs
from dashboard.models import Heartbeat
from tests.processes import CHECKOUT
from workers import tasks
from workers.app import app


def test_everything_on_the_schedule_is_registered() -> None:
    assert {entry["task"] for entry in app.conf.beat_schedule.values()} <= set(app.tasks)


@pytest.mark.parametrize("name", [dispatch.JUDGE, dispatch.RESOLVE, dispatch.DELIVER])
def test_only_passing_troubles_are_retried(name: str) -> None:
    assert runs.Busy in app.tasks[name].autoretry_for
    assert Exception not in app.tasks[name].autoretry_for


def test_the_sweep_sends_the_deliveries_that_are_due(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[object, ...]] = []
    monkeypatch.setattr(alerts, "due_deliveries", lambda: [7, 8])
    monkeypatch.setattr(dispatch, "send_task", lambda *task: sent.append(task))
    tasks.sweep()
    assert sent == [(dispatch.DELIVER, 7), (dispatch.DELIVER, 8)]


def test_the_pulse_proves_that_the_scheduler_lives(transactional_db: None) -> None:
    tasks.pulse()
    assert Heartbeat.objects.filter(name="scheduler").exists()


def test_a_measuring_worker_carries_nothing_heavy() -> None:
    heavy = {"torch", "scipy", "plotly", "dashboard.pages"}
    code = f"import sys, workers.app; sys.exit(str({heavy!r} & set(sys.modules) or ''))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=CHECKOUT, check=False, capture_output=True, text=True)
    assert done.stderr.strip() == ""
