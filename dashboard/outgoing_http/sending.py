"""One request and its answer. Redirects are not followed: their target would escape the guard."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Timer
from urllib.parse import SplitResult, urlsplit

from dashboard.outgoing_http.addresses import resolve_public_address
from dashboard.outgoing_http.errors import OutgoingError, WrongUrlError

STEP_TIMEOUT_SECONDS = 10
# For the whole exchange: a receiver that sends a byte now and then would hold a worker for ever.
EXCHANGE_TIMEOUT_SECONDS = 30
DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class HttpAnswer:
    """`headers` by their names in small letters; `body` is empty where it wasn't asked for."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def parse_url(address: str, subject: str) -> SplitResult:
    """The parts of a URL. Raises WrongUrlError, saying what is wrong; `subject` begins the sentence."""
    try:
        url = urlsplit(address)
        port = url.port
    except ValueError as error:
        # Never what was written there, which Python repeats: it may be a secret.
        problem = (
            "its port is no number up to 65535" if str(error).startswith("Port ") else "it can't be read"
        )
        raise WrongUrlError(f"{subject} is wrong: {problem}.") from None
    if url.scheme not in DEFAULT_PORTS or not url.hostname:
        raise WrongUrlError(f"{subject} must begin with http:// or https:// and name a host.")
    if url.username or url.password:
        raise WrongUrlError(f"{subject} must not hold a user or a password: they would be shown.")
    # What http.client would refuse it repeats in its error.
    if port == 0 or not address.isascii() or any(letter <= " " or letter == "\x7f" for letter in address):
        raise WrongUrlError(f"{subject} holds a character or a port that no URL may have.")
    return url


def port_of(url: SplitResult) -> int:
    return url.port or DEFAULT_PORTS[url.scheme]


def send_request(
    url: SplitResult,
    method: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    permission: str,
    most_bytes: int = 0,
    whole: bool = True,
) -> HttpAnswer:
    """The answer to a request, with as much as `most_bytes` of its body; without it where that is 0.

    `permission` is as in `resolve_public_address`. Raises OutgoingError where none came, or a longer one;
    unless `whole` the beginning of a longer one is enough.
    """
    host, port = url.hostname or "", port_of(url)
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    connection = http.client.HTTPConnection(host, port, timeout=STEP_TIMEOUT_SECONDS)
    address = resolve_public_address(host, port, permission)
    try:
        connection.sock = open_connection(url.scheme, address, host, port)
        with exchange_deadline(connection.sock):
            if isinstance(connection.sock, ssl.SSLSocket):
                connection.sock.do_handshake()
            connection.request(method, target, body or None, {"Host": url.netloc, **headers})
            return read_answer(connection, host, most_bytes, whole)
    except (OSError, http.client.HTTPException) as error:
        raise OutgoingError(f"{host} could not be reached: {error_reason(error)}.") from error
    finally:
        connection.close()


def read_answer(
    connection: http.client.HTTPConnection, host: str, most_bytes: int, whole: bool
) -> HttpAnswer:
    with connection.getresponse() as response:
        # Not read where nobody looks at it: it may be endless.
        body = response.read(most_bytes + whole) if most_bytes else b""
        if len(body) > most_bytes:
            raise OutgoingError(f"{host} answered more than {most_bytes} bytes.")
        return HttpAnswer(
            response.status, {name.lower(): value for name, value in response.getheaders()}, body
        )


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
    with ExitStack() as unless_wrapped:
        unless_wrapped.callback(plain.close)
        context = ssl.create_default_context()
        wrapped = context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
        unless_wrapped.pop_all()
    return wrapped


def error_reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text.strip().rstrip(".") or type(error).__name__
