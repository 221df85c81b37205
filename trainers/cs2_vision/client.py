"""The agent's end of the vision service: its process, connections, requests."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import IO, NamedTuple

import paceline
from service import WITHOUT

MISSING = "cs2_vision can't run here, since its vision service needs the package uvicorn, which is missing"


def resident(process: int) -> int:
    """A process's resident bytes; 0 where the system does not say."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


class ServiceError(RuntimeError):
    """One sentence: why the service did not answer."""


class MissingPartError(RuntimeError):
    """One sentence: which package is missing, and what can't be run without it."""


@dataclass(frozen=True)
class Setup:
    """What the service is started with: milliseconds of a round trip, and 0 for a network without limits."""

    device: str
    weights: str
    threads: int = 1
    torch_threads: int = 1
    latency_ms: float = 0.0
    bandwidth_mbit: float = 0.0


class Service:
    """The process. It ends when this one does, or with close()."""

    def __init__(self, setup: Setup) -> None:
        script = str(Path(__file__).with_name("service.py"))
        command = [sys.executable, script, json.dumps(asdict(setup))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None  # noqa: S101 (it is asked for above)
        port = self.process.stdout.readline()
        if not port:
            raise self.failed()
        self.address = ("127.0.0.1", int(port))

    def failed(self) -> RuntimeError:
        """Why it doesn't answer."""
        try:
            status = self.process.wait(5)
        except subprocess.TimeoutExpired:
            return ServiceError("the vision service does not answer")
        if status == WITHOUT:
            return MissingPartError(MISSING)
        return ServiceError(f"the vision service has ended with status {status}")

    def close(self) -> None:
        """End it."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()
        self.process.wait()


class Connection:
    """One connection, over which one request is under way at a time."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address)
        self.sent = 0.0
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Room for a whole request, so that sending it waits for nobody.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        # A file of the system's own, not of the socket: how often it has to be asked for more is a matter of
        # chance, and happens inside of it.
        self.reader: IO[bytes] = os.fdopen(os.dup(self.socket.fileno()), "rb")

    def send(self, head: str, body: bytes) -> None:
        self.socket.sendall(head.encode() + body)

    def receive(self) -> bytes:
        """The body of an answer; raises EOFError where the connection ends before."""
        status = self.reader.readline()
        length = 0
        while (line := self.reader.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        body = self.reader.read(length)
        if not status or len(body) < length:
            raise EOFError
        if b" 200 " not in status:
            raise ServiceError(f"the vision service refused a request: {body.decode().strip()}")
        return body

    def close(self) -> None:
        self.reader.close()
        self.socket.close()


class Request(NamedTuple):
    """A body with pictures, and whether its answer is not urgent."""

    body: bytes
    later: bool


class Client:
    """Sends requests, as many at once as `parallel` says; the answers come in the requests' order."""

    def __init__(self, service: Service, *, keep_alive: bool, transfer: str, compact: bool) -> None:
        self.service = service
        self.keep_alive = keep_alive
        answer = "short" if compact else "words"
        self.head = (
            f"POST /look HTTP/1.1\r\nHost: localhost\r\nX-Transfer: {transfer}\r\nX-Answer: {answer}\r\n"
            f"Connection: {'keep-alive' if keep_alive else 'close'}\r\n"
        )
        self.free: list[Connection] = []

    def send(self, request: Request) -> Connection:
        """Start a request; receive() with what this returns waits for its answer."""
        head = f"{self.head}X-Later: {int(request.later)}\r\nContent-Length: {len(request.body)}\r\n\r\n"
        paceline.count("api_calls")
        paceline.count("bytes_sent", len(head) + len(request.body))
        try:
            connection = self.free.pop() if self.free else Connection(self.service.address)
            connection.sent = perf_counter()
            connection.send(head, request.body)
        except OSError as error:
            raise self.service.failed() from error
        return connection

    def receive(self, connection: Connection) -> list[str]:
        """Wait for an answer: one text for each picture."""
        try:
            body = connection.receive()
        except (OSError, EOFError) as error:
            raise self.service.failed() from error
        paceline.gauge("latency_ms", 1e3 * (perf_counter() - connection.sent))
        if self.keep_alive:
            self.free.append(connection)
        else:
            connection.close()
        return body.decode().splitlines()

    def ask(self, requests: Sequence[Request]) -> list[str]:
        """Ask and wait, one after the other."""
        return [text for request in requests for text in self.receive(self.send(request))]

    def usage(self) -> dict[str, list[float]]:
        """How busy the service was since the last time: shares of short slices, in per cent."""
        try:
            connection = Connection(self.service.address)
            connection.send("GET /usage HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"")
            shares: dict[str, list[float]] = json.loads(connection.receive())
        except (OSError, EOFError) as error:
            raise self.service.failed() from error
        connection.close()
        return shares

    def close(self) -> None:
        for connection in self.free:
            connection.close()
        self.free.clear()
