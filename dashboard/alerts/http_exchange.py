"""One request to a receiver outside: to a public address alone, within a time, its answer's size bounded."""

from __future__ import annotations

import http.client
import json
import math
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Timer
from typing import Any
from urllib.parse import SplitResult, urlsplit

from dashboard.alerts.addresses import resolve_public_address
from dashboard.alerts.errors import DeliveryError, PermanentDeliveryError

STEP_TIMEOUT_SECONDS = 10
# For the whole exchange: a receiver that sends a byte now and then would hold a worker for ever.
EXCHANGE_TIMEOUT_SECONDS = 30
DEFAULT_PORTS = {"http": 80, "https": 443}
# Of a service's answer so much is read for the sentence that says what is wrong.
MOST_ANSWER_BYTES = 4096
MOST_REASON_LETTERS = 200
# Asking again changes nothing: the message, the secret or the place is refused.
FINAL_STATUSES = frozenset({400, 401, 403, 404, 405, 410, 413, 415})


@dataclass(frozen=True, slots=True)
class Answer:
    """`text` is the beginning of its body, where that was asked for."""

    status: int
    text: str = ""
    retry_after: float | None = None

    @property
    def is_taken(self) -> bool:
        return 200 <= self.status < 300


def parse_webhook_url(address: str) -> SplitResult:
    """The parts of a webhook's URL. Raises PermanentDeliveryError, naming what is wrong with it."""
    try:
        url = urlsplit(address)
        port = url.port
    except ValueError as error:
        # Behind ` as ` stands what was written there, which may be a secret.
        raise PermanentDeliveryError(
            f"The webhook's URL is wrong: {str(error).partition(' as ')[0]}."
        ) from None
    if url.scheme not in DEFAULT_PORTS or not url.hostname:
        raise PermanentDeliveryError("The webhook's URL must begin with http:// or https:// and name a host.")
    if url.username or url.password:
        raise PermanentDeliveryError("The webhook's URL must not hold a user or a password.")
    # What http.client would refuse it repeats in its error.
    if port == 0 or not address.isascii() or any(letter <= " " or letter == "\x7f" for letter in address):
        raise PermanentDeliveryError("The webhook's URL holds a character or a port that no URL may have.")
    return url


def post_to_service(
    url: SplitResult,
    message: Mapping[str, Any],
    read_reason: Callable[[str], str],
    *,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Send JSON to a service; `read_reason` finds the reason for a refusal in its answer.

    Raises DeliveryError, with the wait that the service asked for, or PermanentDeliveryError.
    """
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    kind = {"Content-Type": "application/json", "User-Agent": "Paceline", **(headers or {})}
    answer = exchange_request(url, body, kind, method=method, read=True)
    if not answer.is_taken:
        refuse_answer(url, answer, read_reason(answer.text))
    return answer


def refuse_answer(url: SplitResult, answer: Answer, reason: str = "", *, final: bool = True) -> None:
    """Raise what the answer means. Only its status, and the service's own reason, are repeated.

    `final`: some statuses are never another answer.
    """
    if 300 <= answer.status < 400:
        raise DeliveryError(f"{url.hostname} answered {answer.status}: redirects are not followed.")
    phrase = f"{answer.status} {http.client.responses.get(answer.status, '')}".strip()
    plain = readable_reason(reason)
    sentence = f"{url.hostname} answered {phrase}{f': {plain}' if plain else ''}."
    if final and answer.status in FINAL_STATUSES:
        raise PermanentDeliveryError(sentence)
    raise DeliveryError(sentence, answer.retry_after)


def readable_reason(text: str) -> str:
    """One short line without the full stop at its end."""
    line = " ".join(
        "".join(letter if letter.isprintable() else " " for letter in text[:MOST_ANSWER_BYTES]).split()
    )
    return line[:MOST_REASON_LETTERS].rstrip(". ")


def json_reason(*names: str) -> Callable[[str], str]:
    """A reader of answers in JSON: the members of these names, as far as they are texts."""

    def read_reason(text: str) -> str:
        try:
            answer = json.loads(text)
        except ValueError:
            return ""
        if not isinstance(answer, dict):
            return ""
        if isinstance(answer.get("error"), dict):
            answer = answer["error"]
        return ": ".join(value for name in names if isinstance(value := answer.get(name), str) and value)

    return read_reason


def exchange_request(
    url: SplitResult, body: bytes, headers: Mapping[str, str], *, method: str = "POST", read: bool = False
) -> Answer:
    """The answer. Its body isn't read unless `read`: nobody looks at it, and it may be endless."""
    host, port = url.hostname or "", url.port or DEFAULT_PORTS[url.scheme]
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    connection = http.client.HTTPConnection(host, port, timeout=STEP_TIMEOUT_SECONDS)
    address = resolve_public_address(host, port)
    try:
        connection.sock = open_connection(url.scheme, address, host, port)
        with exchange_deadline(connection.sock):
            if isinstance(connection.sock, ssl.SSLSocket):
                connection.sock.do_handshake()
            connection.request(method, target, body, {"Host": url.netloc, **headers})
            with connection.getresponse() as response:
                text = response.read(MOST_ANSWER_BYTES) if read else b""
                wait = parse_retry_after(response.headers.get("Retry-After"))
                return Answer(response.status, text.decode("utf-8", "replace"), wait)
    except (OSError, http.client.HTTPException) as error:
        raise DeliveryError(f"{host} could not be reached: {error_reason(error)}.") from error
    finally:
        connection.close()


def parse_retry_after(text: str | None) -> float | None:
    """The seconds of a Retry-After header; its other form, a date, is not used by any of the services."""
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


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
