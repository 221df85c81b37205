"""When a request came in, by the kernel's record of its connection."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import RequestFactory

from dashboard.page_cache.arrivals import CLOCK_MONOTONIC_COARSE, TICK_SECONDS, arrival_time


@pytest.fixture
def connection() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        browser = socket.create_connection(server.getsockname())
        taken, _ = server.accept()
        with browser, taken:
            yield browser, taken


def arrival_over(connection: Any) -> float:
    return arrival_time(RequestFactory().get("/", **{"gunicorn.socket": connection}))


def test_a_request_came_when_its_last_bytes_did(connection: tuple[socket.socket, socket.socket]) -> None:
    browser, taken = connection
    # Of the same ticks as the kernel's record: on a busy machine they may be late.
    sent_at = time.clock_gettime(CLOCK_MONOTONIC_COARSE)
    browser.sendall(b"GET / HTTP/1.1\r\n\r\n")
    taken.recv(1000)
    received_at = time.monotonic()
    time.sleep(0.1)
    # A busy machine may make a reading later, never earlier.
    arrived_at = min(arrival_over(taken) for _ in range(9))
    assert sent_at <= arrived_at <= received_at + 2 * TICK_SECONDS < time.monotonic()


def test_it_came_now_where_nobody_knows() -> None:
    before = time.monotonic()
    closed = socket.socket()
    closed.close()
    with socket.socketpair()[0] as local:
        for unknown in (None, "socket", local, closed):
            assert arrival_over(unknown) >= before


def test_it_came_now_on_a_system_without_such_a_record(
    connection: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delattr(socket, "TCP_INFO")
    before = time.monotonic()
    assert arrival_over(connection[1]) >= before
