from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction

from dashboard import dispatch


@pytest.fixture
def pool() -> Iterator[str]:
    """A pool whose queue nobody else uses; emptied afterwards."""
    name = f"test-{uuid4().hex[:8]}"
    yield name
    heard(dispatch.pool_queue(name))


def heard(queue: str) -> list[list[Any]]:
    """[task name, arguments] of every message in a queue, which is empty then."""
    found = []
    with dispatch.app.connection_for_read() as connection, connection.SimpleQueue(queue) as messages:
        try:
            while True:
                message = messages.get_nowait()
                message.ack()
                found.append([message.headers["task"], json.loads(message.body)[0]])
        except messages.Empty:
            return found


@pytest.mark.django_db(transaction=True)
def test_a_message_goes_out_with_the_commit(pool: str) -> None:
    with transaction.atomic():
        dispatch.ring(pool, 2)
        assert dispatch.waiting(pool) == 0
    assert dispatch.waiting(pool) == 2
    assert heard(dispatch.pool_queue(pool)) == [[dispatch.MEASURE, [pool]]] * 2


@pytest.mark.django_db(transaction=True)
def test_nothing_goes_out_with_a_rollback(pool: str) -> None:
    with transaction.atomic():
        dispatch.ring(pool)
        transaction.set_rollback(True)
    assert dispatch.waiting(pool) == 0


@pytest.mark.django_db(transaction=True)
def test_a_task_is_sent_by_name(pool: str) -> None:
    dispatch.send(dispatch.JUDGE, 7, queue=dispatch.pool_queue(pool))
    assert heard(dispatch.pool_queue(pool)) == [["workers.judge", [7]]]


@pytest.mark.django_db(transaction=True)
def test_many_bells_are_bounded(pool: str) -> None:
    dispatch.ring(pool, 10_000)
    assert dispatch.waiting(pool) == dispatch.MOST_RINGS


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_is_down_breaks_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dispatch, "app", dispatch.make_app("redis+socket:///nowhere/redis.sock"))
    began = time.monotonic()
    with transaction.atomic():
        dispatch.ring("default", 50)
    assert time.monotonic() - began < 2
    assert "The queue can't be reached" in caplog.text
    assert dispatch.waiting("default") is None


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_does_not_answer_holds_nobody_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(
            dispatch, "app", dispatch.make_app(f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        )
        began = time.monotonic()
        dispatch.ring("default", 50)
        assert time.monotonic() - began < 12


def test_messages_are_json_alone() -> None:
    conf = dispatch.app.conf
    assert (conf.task_serializer, conf.accept_content, conf.result_backend) == ("json", ["json"], None)
    assert conf.broker_transport_options["unacked_restore_interval"] == 1


def test_the_schedule_rings_the_service_workers() -> None:
    entries = dispatch.app.conf.beat_schedule.values()
    assert {entry["task"] for entry in entries} == {dispatch.SWEEP, dispatch.PULSE, dispatch.WATCH}
    assert {entry["options"]["queue"] for entry in entries} == {dispatch.SERVICE}
