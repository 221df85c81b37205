"""Alerts as a signed JSON request. docs/alerts.md tells receivers what comes and how to check it."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Timer
from urllib.parse import SplitResult, urlsplit

from dashboard.alerts.addresses import resolve_public_address
from dashboard.alerts.errors import DeliveryError, PermanentDeliveryError
from dashboard.alerts.payload import alert_payload
from dashboard.models import Delivery
from dashboard.secrets import is_lost

STEP_TIMEOUT_SECONDS = 10
# For the whole exchange: a receiver that sends a byte now and then would hold a worker for ever.
EXCHANGE_TIMEOUT_SECONDS = 30
DEFAULT_PORTS = {"http": 80, "https": 443}


def send_webhook(delivery: Delivery) -> None:
    """Raises DeliveryError where no 2xx came back, PermanentDeliveryError where the address isn't allowed."""
    if is_lost(delivery.channel.secret):
        raise DeliveryError(
            "The channel's secret can't be read any more: manage.py secrets says how to set it."
        )
    body = json.dumps(alert_payload(delivery), ensure_ascii=False, separators=(",", ":")).encode()
    url = parse_webhook_url(delivery.channel.address)
    status = post_body(url, body, request_headers(delivery, body))
    if 300 <= status < 400:
        raise DeliveryError(f"{url.hostname} answered {status}: redirects are not followed.")
    if not 200 <= status < 300:
        raise DeliveryError(f"{url.hostname} answered {status} {http.client.responses.get(status, '')}.")


def request_headers(delivery: Delivery, body: bytes) -> dict[str, str]:
    timestamp = str(int(time.time()))
    return {
        "Content-Type": "application/json",
        "User-Agent": "Paceline",
        "Paceline-Event": f"regression.{delivery.event}",
        "Paceline-Delivery": str(delivery.pk),
        "Paceline-Timestamp": timestamp,
        "Paceline-Signature": "sha256=" + sign_body(delivery.channel.secret, timestamp, body),
    }


def sign_body(secret: str, timestamp: str, body: bytes) -> str:
    """HMAC-SHA256, in hex, over the timestamp, a full stop and the body."""
    return hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


def parse_webhook_url(address: str) -> SplitResult:
    """The parts of a webhook's URL. Raises PermanentDeliveryError, naming what is wrong with it."""
    try:
        url = urlsplit(address)
        port = url.port
    except ValueError as error:
        raise PermanentDeliveryError(f"The webhook's URL is wrong: {error}.") from error
    if url.scheme not in DEFAULT_PORTS or not url.hostname:
        raise PermanentDeliveryError("The webhook's URL must begin with http:// or https:// and name a host.")
    if url.username or url.password:
        raise PermanentDeliveryError(
            "The webhook's URL must not hold a user or a password: requests are signed instead."
        )
    if port == 0 or not address.isascii() or any(character <= " " for character in address):
        raise PermanentDeliveryError("The webhook's URL holds a character or a port that no URL may have.")
    return url


def post_body(url: SplitResult, body: bytes, headers: dict[str, str]) -> int:
    """The answer's status. Its body isn't read: nobody looks at it, and it may be endless."""
    host, port = url.hostname or "", url.port or DEFAULT_PORTS[url.scheme]
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    connection = http.client.HTTPConnection(host, port, timeout=STEP_TIMEOUT_SECONDS)
    address = resolve_public_address(host, port)
    try:
        connection.sock = open_connection(url.scheme, address, host, port)
        with exchange_deadline(connection.sock):
            return exchange_request(connection, target, body, {"Host": url.netloc, **headers})
    except (OSError, http.client.HTTPException) as error:
        raise DeliveryError(f"{host} could not be reached: {error_reason(error)}.") from error
    finally:
        connection.close()


def exchange_request(
    connection: http.client.HTTPConnection, target: str, body: bytes, headers: dict[str, str]
) -> int:
    if isinstance(connection.sock, ssl.SSLSocket):
        connection.sock.do_handshake()
    connection.request("POST", target, body, headers)
    with connection.getresponse() as response:
        return response.status


@contextmanager
def exchange_deadline(connection: socket.socket) -> Iterator[None]:
    """Cut the connection off after EXCHANGE_TIMEOUT_SECONDS. Raises TimeoutError then, whatever came back."""
    passed = Event()

    def cut_off() -> None:
        passed.set()
        with suppress(OSError):  # It may have ended by itself.
            connection.shutdown(socket.SHUT_RDWR)

    watchdog = Timer(EXCHANGE_TIMEOUT_SECONDS, cut_off)
    watchdog.daemon = True
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()
        if passed.is_set():
            raise TimeoutError


def open_connection(scheme: str, address: str, host: str, port: int) -> socket.socket:
    """A connection to this very address: a second look-up of the name could answer another one.

    TLS shakes hands later, within the deadline.
    """
    plain = socket.create_connection((address, port), timeout=STEP_TIMEOUT_SECONDS)
    if scheme == "http":
        return plain
    try:
        return ssl.create_default_context().wrap_socket(
            plain, server_hostname=host, do_handshake_on_connect=False
        )
    except BaseException:
        plain.close()
        raise


def error_reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text.strip().rstrip(".") or type(error).__name__
