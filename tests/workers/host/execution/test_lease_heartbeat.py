"""A lease is renewed with what people read meanwhile, and an outage of the site costs nothing."""

from __future__ import annotations

import threading

import pytest

from dashboard import hosts, runs
from dashboard.models import Machine
from tests.workers.conftest import Host, Requested
from tests.workers.waiting import wait_until
from workers.host.errors import SiteAway, Stopped
from workers.host.execution.launching import Progress
from workers.host.execution.lease_heartbeat import LeaseHeartbeat
from workers.host.logs import Log
from workers.host.site_api import outages
from workers.host.site_api.outages import ask_site


def make_heartbeat(host: Host, log: Log, stop: threading.Event) -> LeaseHeartbeat:
    assignment = host.client.claim({})
    assert assignment is not None

    def renew(progress: float | None, text: str, said: str) -> bool:
        return host.client.heartbeat_run(assignment.lease, progress, text, said)

    return LeaseHeartbeat(assignment.name, renew, log, stop, lease_seconds=0.2)


def test_a_beat_shows_progress_and_log(host: Host, requested: Requested) -> None:
    run, log = requested(), Log()
    heartbeat = make_heartbeat(host, log, threading.Event())
    heartbeat.progress = lambda: Progress(0.25, "repetition 1 of 4")
    log.write(b"hello\n")
    heartbeat.beat()
    run.refresh_from_db()
    assert (run.progress, run.activity, run.log.text) == (0.25, "repetition 1 of 4", "hello\n")


def test_a_run_that_is_no_longer_ours_is_stopped(host: Host, requested: Requested) -> None:
    run, stop = requested(), threading.Event()
    heartbeat = make_heartbeat(host, Log(), stop)
    runs.cancel_run(run.pk, by="Ada")
    heartbeat.beat()
    assert stop.is_set()


def test_a_host_whose_token_was_revoked_stops(host: Host, requested: Requested) -> None:
    requested()
    stop = threading.Event()
    heartbeat = make_heartbeat(host, Log(), stop)
    hosts.retire_machine(Machine.objects.get())
    with heartbeat:
        wait_until(stop.is_set)
    assert Machine.objects.get().state == Machine.State.RETIRED


def test_while_the_site_is_away_nothing_of_the_log_is_lost(
    host: Host, requested: Requested, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, log, stop = requested(), Log(), threading.Event()
    heartbeat = make_heartbeat(host, log, stop)
    log.write(b"hello\n")
    with monkeypatch.context() as away:
        away.setattr(host.client, "site", "http://127.0.0.1:1")
        with pytest.raises(SiteAway, match="be reached"):
            heartbeat.beat()
    heartbeat.beat()
    run.refresh_from_db()
    assert run.log.text == "hello\n"
    assert not stop.is_set()


def test_an_outage_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages.time, "sleep", lambda _: None)
    answers = iter([SiteAway("away."), SiteAway("away."), "done"])

    def act() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert ask_site(act) == "done"


def test_whoever_waits_for_the_site_can_be_stopped() -> None:
    stop = threading.Event()
    stop.set()

    def act() -> None:
        raise SiteAway("away.")

    with pytest.raises(Stopped):
        ask_site(act, stop)
