from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction

from dashboard import dispatch
from dashboard.host_protocol import queues


@pytest.fixture
def pool() -> Iterator[str]:
    """A pool whose queue nobody else uses; emptied afterwards."""
    name = f"test-{uuid4().hex[:8]}"
    yield name
    take_messages(dispatch.pool_queue(name))


def take_messages(queue: str) -> list[list[Any]]:
    """[task name, arguments] of every message in a queue, which is empty then."""
    messages_taken = []
    with dispatch.app.connection_for_read() as connection, connection.SimpleQueue(queue) as messages:
        try:
            while True:
                message = messages.get_nowait()
                message.ack()
                messages_taken.append([message.headers["task"], json.loads(message.body)[0]])
        except messages.Empty:
            return messages_taken


@pytest.mark.django_db(transaction=True)
def test_a_message_goes_out_with_the_commit(pool: str) -> None:
    with transaction.atomic():
        dispatch.wake_workers(pool, 2)
        assert dispatch.count_waiting_messages(pool) == 0
    assert dispatch.count_waiting_messages(pool) == 2
    assert take_messages(dispatch.pool_queue(pool)) == [[dispatch.MEASURE, [pool]]] * 2


@pytest.mark.django_db(transaction=True)
def test_nothing_goes_out_with_a_rollback(pool: str) -> None:
    with transaction.atomic():
        dispatch.wake_workers(pool)
        transaction.set_rollback(True)
    assert dispatch.count_waiting_messages(pool) == 0


@pytest.mark.django_db(transaction=True)
def test_a_task_is_sent_by_name_and_no_judgement_waits_for_a_repository(
    pool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "SERVICE", pool)
    monkeypatch.setattr(dispatch, "FETCHES", f"{pool}-fetches")
    for task in (dispatch.JUDGE, dispatch.RESOLVE, dispatch.DELIVER, dispatch.POLL, dispatch.PUBLISH_CHECK):
        dispatch.send_task(task, 7)
    assert take_messages(pool) == [["workers.judge", [7]], ["workers.deliver", [7]]]
    assert take_messages(f"{pool}-fetches") == [
        [task, [7]] for task in ("workers.resolve_trigger", "workers.poll_project", "workers.publish_check")
    ]


@pytest.mark.django_db(transaction=True)
def test_the_messages_of_many_runs_are_bounded(pool: str) -> None:
    dispatch.wake_workers(pool, 10_000)
    assert dispatch.count_waiting_messages(pool) == dispatch.MOST_WAKE_MESSAGES


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_is_down_breaks_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dispatch, "app", dispatch.make_app("redis+socket:///nowhere/redis.sock"))
    waited: list[float] = []
    monkeypatch.setattr("kombu.utils.functional.sleep", waited.append)
    with transaction.atomic():
        dispatch.wake_workers("default", 50)
    # Not once for each message, and nobody waits for another try.
    assert caplog.text.count("The queue can't be reached") == 1
    assert sum(waited) == 0
    assert dispatch.count_waiting_messages("default") is None


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_does_not_answer_holds_nobody_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried twice, for five seconds each, however many messages wait."""
    assert queues.REDIS_OPTIONS["socket_timeout"] == 5
    monkeypatch.setitem(queues.REDIS_OPTIONS, "socket_timeout", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(
            dispatch, "app", dispatch.make_app(f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        )
        dispatch.wake_workers("default", 50)
        assert 1 <= count_connections(silent) <= 2


def count_connections(server: socket.socket) -> int:
    """How many were made to a server that has accepted none."""
    server.setblocking(False)
    count = 0
    with suppress(BlockingIOError):
        while True:
            server.accept()[0].close()
            count += 1
    return count


def test_messages_are_json_alone() -> None:
    conf = dispatch.app.conf
    assert (conf.task_serializer, conf.accept_content, conf.result_backend) == ("json", ["json"], None)
    assert conf.broker_transport_options["unacked_restore_interval"] == 1


def test_what_is_short_is_scheduled_apart_from_what_may_wait() -> None:
    entries = dispatch.app.conf.beat_schedule.values()
    assert {entry["task"]: entry["options"]["queue"] for entry in entries} == {
        dispatch.SWEEP: dispatch.SWEEPS,
        dispatch.SCHEDULER_HEARTBEAT: dispatch.SWEEPS,
        dispatch.WATCH_MACHINES: dispatch.SERVICE,
        dispatch.WATCH_CLAIMS: dispatch.SERVICE,
        dispatch.PRUNE: dispatch.SERVICE,
        dispatch.REMIND: dispatch.SERVICE,
    }
