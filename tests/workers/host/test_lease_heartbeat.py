from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import OperationalError

from dashboard import runs
from dashboard.models import Run
from tests.workers.conftest import Requested
from tests.workers.waiting import wait_until
from workers.host.executor import retry_database
from workers.host.launching import Progress
from workers.host.lease_heartbeat import LeaseHeartbeat
from workers.host.logs import Log


def claim_run(run: Run) -> runs.RunAssignment:
    assignment = runs.claim_run(run.pool.name, "gpu-1")
    assert assignment is not None
    return assignment


def make_heartbeat(run: Run, log: Log, stop: threading.Event) -> LeaseHeartbeat:
    assignment = claim_run(run)
    return LeaseHeartbeat(assignment.name, lambda *said: runs.heartbeat_run(assignment, *said), log, stop)


def test_a_beat_shows_progress_and_log(requested: Requested) -> None:
    run, log = requested(), Log()
    heartbeat = make_heartbeat(run, log, threading.Event())
    heartbeat.progress = lambda: Progress(0.25, "repetition 1 of 4")
    log.write(b"hello\n")
    heartbeat.beat()
    run.refresh_from_db()
    assert (run.progress, run.activity, run.log.text) == (0.25, "repetition 1 of 4", "hello\n")


def test_a_run_that_is_no_longer_ours_is_stopped(requested: Requested) -> None:
    run, stop = requested(), threading.Event()
    heartbeat = make_heartbeat(run, Log(), stop)
    runs.cancel_run(run.pk, by="Ada")
    heartbeat.beat()
    assert stop.is_set()


def raise_away(*_: Any, **__: Any) -> bool:
    raise OperationalError("the database is away")


def test_while_the_database_is_away_nothing_of_the_log_is_lost(
    requested: Requested, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, log, stop = requested(), Log(), threading.Event()
    heartbeat = make_heartbeat(run, log, stop)
    log.write(b"hello\n")
    with monkeypatch.context() as patch:
        patch.setattr(runs, "heartbeat_run", raise_away)
        heartbeat._try_to_beat()
    heartbeat.beat()
    run.refresh_from_db()
    assert run.log.text == "hello\n"
    assert not stop.is_set()


def test_after_a_lease_without_a_beat_the_run_is_given_up(
    requested: Requested, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    run, stop = requested(), threading.Event()
    settings.PACELINE_LEASE_SECONDS = 0.2
    heartbeat = make_heartbeat(run, Log(), stop)
    monkeypatch.setattr(runs, "heartbeat_run", raise_away)
    with heartbeat:
        wait_until(stop.is_set)
    assert stop.is_set()


def test_a_passing_trouble_of_the_database_is_waited_for() -> None:
    answers = iter([OperationalError("away"), "done"])

    def act() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert retry_database(act) == "done"
