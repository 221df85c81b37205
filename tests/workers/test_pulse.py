from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import OperationalError
from workers.pulse import Pulse

from dashboard import runs
from dashboard.models import Run
from tests.workers.conftest import Requested
from tests.workers.waiting import wait_until
from workers import measuring
from workers.launching import Progress
from workers.logs import Log


def claimed(run: Run) -> runs.Assignment:
    assignment = runs.claim(run.pool.name, "gpu-1")
    assert assignment is not None
    return assignment


def beating(run: Run, log: Log, stop: threading.Event) -> Pulse:
    assignment = claimed(run)
    return Pulse(assignment.name, lambda *said: runs.heartbeat(assignment, *said), log, stop)


def test_a_beat_shows_progress_and_log(requested: Requested) -> None:
    run, log = requested(), Log()
    pulse = beating(run, log, threading.Event())
    pulse.progress = lambda: Progress(0.25, "repetition 1 of 4")
    log.write(b"hello\n")
    pulse.beat()
    run.refresh_from_db()
    assert (run.progress, run.activity, run.log.text) == (0.25, "repetition 1 of 4", "hello\n")


def test_a_run_that_is_no_longer_ours_is_stopped(requested: Requested) -> None:
    run, stop = requested(), threading.Event()
    pulse = beating(run, Log(), stop)
    runs.cancel(run.pk, by="Ada")
    pulse.beat()
    assert stop.is_set()


def away(*_: Any, **__: Any) -> bool:
    raise OperationalError("the database is away")


def test_while_the_database_is_away_nothing_of_the_log_is_lost(
    requested: Requested, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, log, stop = requested(), Log(), threading.Event()
    pulse = beating(run, log, stop)
    log.write(b"hello\n")
    with monkeypatch.context() as patch:
        patch.setattr(runs, "heartbeat", away)
        pulse._try_to_beat()
    pulse.beat()
    run.refresh_from_db()
    assert run.log.text == "hello\n"
    assert not stop.is_set()


def test_after_a_lease_without_a_beat_the_run_is_given_up(
    requested: Requested, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    run, stop = requested(), threading.Event()
    settings.PACELINE_LEASE_SECONDS = 0.2
    pulse = beating(run, Log(), stop)
    monkeypatch.setattr(runs, "heartbeat", away)
    with pulse:
        wait_until(stop.is_set)
    assert stop.is_set()


def test_a_passing_trouble_of_the_database_is_waited_for() -> None:
    answers = iter([OperationalError("away"), "done"])

    def act() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert measuring.patiently(act) == "done"
