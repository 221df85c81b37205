from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from pytest_django import Settings

from dashboard import alerts
from dashboard.alerts.errors import DeliveryError, PermanentDeliveryError
from dashboard.alerts.kinds import http_exchange, webhook
from dashboard.models import Delivery
from dashboard.outgoing_http import addresses, sending
from tests.dashboard.alerts.sinks import HttpSink

Make = Callable[..., Delivery]


def test_the_request_is_signed(make_delivery: Make, receiver: HttpSink) -> None:
    delivery = make_delivery("webhook", receiver.url, secret="a shared secret")
    alerts.attempt_delivery(delivery.pk)
    request = receiver.requests[0]
    stamp = request.headers["Paceline-Timestamp"]
    expected = "sha256=" + webhook.sign_body("a shared secret", stamp, request.body)
    assert request.headers["Paceline-Signature"] == expected
    assert abs(int(stamp) - time.time()) < 60
    assert request.headers["Paceline-Delivery"] == str(delivery.pk)


def test_the_body_says_what_happened(make_delivery: Make, receiver: HttpSink) -> None:
    alerts.attempt_delivery(make_delivery("webhook", receiver.url + "?to=training").pk)
    request = receiver.requests[0]
    body = json.loads(request.body)
    assert request.path == "/hooks/paceline?to=training"
    assert (body["format"], body["project"]) == ("paceline.alert/1", "snakes")
    assert body["regression"]["commit"]["subject"] == "Change number 1"
    assert body["regression"]["change_percent"] == 38.0
    assert body["title"].startswith("step time +38 % [35, 41] since ")


def test_a_redirect_is_not_followed(make_delivery: Make, receiver: HttpSink) -> None:
    receiver.answers, receiver.location = [302], receiver.url
    delivery = make_delivery("webhook", receiver.url)
    alerts.attempt_delivery(delivery.pk)
    delivery.refresh_from_db()
    assert delivery.errors == ["127.0.0.1 answered 302: redirects are not followed."]
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "10.1.2.3", "169.254.169.254", "0"])
def test_internal_addresses_are_refused(make_delivery: Make, host: str) -> None:
    delivery = make_delivery("webhook", f"http://{host}:9/hook")
    alerts.attempt_delivery(delivery.pk)
    delivery.refresh_from_db()
    assert delivery.state == "failed"
    assert " internal address" in delivery.errors[0]


@pytest.mark.parametrize(
    "address",
    [
        "192.168.1.1", "172.16.0.1", "100.64.0.1", "224.0.0.1", "255.255.255.255", "fe80::1%eth0", "fd00::1",
        "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:0a00:0001::1", "::",
        "fec0::1", "feff::1%eth0", "192.88.99.1", "::ffff:192.88.99.1", "3fff::1", "3fff:fff::1",
    ],
)  # fmt: skip
def test_no_spelling_of_an_internal_address_is_public(address: str) -> None:
    assert not addresses.is_public_address(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1111", "64:ff9b::101:101"])
def test_public_addresses_are(address: str) -> None:
    assert addresses.is_public_address(address)


def test_the_name_is_looked_up_once(
    monkeypatch: pytest.MonkeyPatch, make_delivery: Make, receiver: HttpSink, settings: Settings
) -> None:
    """A name that answers a public address first and an internal one later doesn't lead inside."""
    settings.PACELINE_ALLOW_INTERNAL_WEBHOOKS = False
    answers = iter([["203.0.113.9"], ["127.0.0.1"]])
    connected = []
    monkeypatch.setattr(addresses, "resolve_host", lambda *_: next(answers))
    monkeypatch.setattr(addresses, "is_public_address", lambda address: address == "203.0.113.9")

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        connected.append(address)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(DeliveryError, match="no answer in time"):
        webhook.send_webhook(make_delivery("webhook", "http://rebinding.example:8000/hook"))
    assert connected == [("203.0.113.9", 8000)]


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("ftp://example.org/x", "must begin with http"),
        ("https:///x", "name a host"),
        ("https://ada:secret@example.org/", "must not hold a user"),
        ("https://example.org:99999/", "its port is no number up to 65535"),
        ("https://example.org/a b", "a character or a port"),
        ("https://example.org/a\x7fb", "a character or a port"),
        ("https://example.org/a\r\nX: y", "a character or a port"),
    ],
)
def test_a_wrong_url_is_refused(url: str, sentence: str) -> None:
    with pytest.raises(PermanentDeliveryError, match=sentence):
        http_exchange.parse_webhook_url(url)


@pytest.fixture
def dribbling() -> Iterator[str]:
    """A server that sends a byte of an endless header now and then."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            try:
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while True:
                    connection.sendall(b"x")
                    time.sleep(0.02)
            except OSError:
                return

    thread = threading.Thread(target=serve)
    thread.start()
    with server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
    thread.join()


def test_an_answer_that_does_not_end_is_cut_off(
    dribbling: str, make_delivery: Make, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PACELINE_ALLOW_INTERNAL_WEBHOOKS = True
    monkeypatch.setattr(sending, "EXCHANGE_TIMEOUT_SECONDS", 0.2)
    with pytest.raises(DeliveryError, match="no answer in time"):
        webhook.send_webhook(make_delivery("webhook", dribbling))
