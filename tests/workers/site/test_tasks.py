from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest
from django.utils import timezone

from dashboard import alerts, dispatch, runs
from dashboard.models import Channel, Delivery, Heartbeat, Regression
from tests.dashboard import factories
from tests.processes import CHECKOUT
from workers.site import tasks
from workers.site.app import app

OURS = {name: task for name, task in app.tasks.items() if name.startswith("workers.")}


def create_delivery() -> Delivery:
    project = factories.create_project()
    last_good, first_bad = factories.create_commits(project, 2)
    run = factories.store_measured_run(
        first_bad, factories.create_case(project), {"step_time": 1.4}, judged_at=timezone.now()
    )
    regression = Regression.objects.create(
        project=project,
        first_bad=first_bad,
        last_good=last_good,
        series=factories.get_series(run, "step_time"),
        state=Regression.State.CONFIRMED,
        before=1.0,
        after=1.4,
        ratio=1.4,
    )
    Channel.objects.create(project=project, kind="email", address="ada@example.org")
    (delivery,) = alerts.announce_regression(regression)
    return delivery


def test_everything_on_the_schedule_is_registered() -> None:
    assert {entry["task"] for entry in app.conf.beat_schedule.values()} <= set(app.tasks)


def test_only_passing_troubles_are_retried() -> None:
    retried = {name: task.autoretry_for for name, task in OURS.items() if hasattr(task, "autoretry_for")}
    # The schedule sends its own again anyway, and a sweep wakes whoever is to measure.
    scheduled = {entry["task"] for entry in app.conf.beat_schedule.values()}
    assert set(retried) == set(OURS) - scheduled
    assert set(retried.values()) == {tasks.PASSING}
    assert runs.Busy in tasks.PASSING
    assert not {Exception, BaseException} & set(tasks.PASSING)


def test_the_sweep_sends_the_deliveries_that_are_due(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[object, ...]] = []
    monkeypatch.setattr(dispatch, "send_task", lambda *task: sent.append(task))
    delivery = create_delivery()
    sent.clear()
    tasks.sweep_everything()
    assert sent == [(dispatch.DELIVER, delivery.pk)]
    Delivery.objects.update(state=Delivery.State.DELIVERED)
    tasks.sweep_everything()
    assert len(sent) == 1


def test_the_sweep_asks_for_what_a_schedule_measures(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[object, ...]] = []
    monkeypatch.setattr(dispatch, "send_task", lambda *task: sent.append(task))
    due = timezone.now() - timedelta(minutes=1)
    project = factories.create_project()
    project.schedules.create(name="nightly", cron="30 3 * * *", time_zone="UTC", next_at=due)
    tasks.sweep_everything()
    assert sent == [(dispatch.RESOLVE, project.triggers.get(schedule="nightly").pk)]


def test_a_part_of_the_sweep_that_fails_keeps_the_others_from_nothing(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sent: list[tuple[object, ...]] = []
    delivery = create_delivery()
    monkeypatch.setattr(dispatch, "send_task", lambda *task: sent.append(task))
    monkeypatch.setattr(runs, "sweep_runs", lambda: [].pop())
    tasks.sweep_everything()
    assert sent == [(dispatch.DELIVER, delivery.pk)]
    assert "failed, and is tried again with the next sweep" in caplog.text


def test_the_scheduler_heartbeat_proves_that_the_scheduler_lives(transactional_db: None) -> None:
    tasks.keep_scheduler_heartbeat()
    assert Heartbeat.objects.filter(name="scheduler").exists()


def test_a_measuring_worker_carries_nothing_heavy() -> None:
    heavy = {"torch", "scipy", "plotly", "dashboard.pages"}
    code = f"import sys, workers.site.app; sys.exit(str({heavy!r} & set(sys.modules) or ''))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=CHECKOUT, check=False, capture_output=True, text=True)
    assert done.stderr.strip() == ""
