"""Receivers at the outer edge: a mail server and a web server of a few lines, on real sockets."""

from __future__ import annotations

import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast


@contextmanager
def serve_in_thread(server: socketserver.BaseServer) -> Iterator[None]:
    # The poll interval is what the end of a test waits for.
    thread = threading.Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class HttpSink:
    """Keeps every request, and answers each with the next of `answers`, 200 when they are used up."""

    answers: list[int] = field(default_factory=list)
    location: str = ""
    tls: ssl.SSLContext | None = None
    requests: list[Request] = field(default_factory=list)
    url: str = ""

    @contextmanager
    def open(self, port: int = 0) -> Iterator[HttpSink]:
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                sink.requests.append(Request(self.path, dict(self.headers), body))
                self.send_response(sink.answers.pop(0) if sink.answers else 200)
                if sink.location:
                    self.send_header("Location", sink.location)
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Silent: tests read the requests."""

        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{server.server_port}/hooks/paceline"
        if self.tls:
            # A connection shakes hands in its own thread: a client that breaks it off hurts nobody else.
            server.socket = self.tls.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
            self.url = f"https://localhost:{server.server_port}/hooks/paceline"
        with serve_in_thread(server):
            yield self


class MailSink(socketserver.ThreadingTCPServer):
    """Speaks as much SMTP as a client needs. `refuse` is what it says to each recipient instead of 250."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, refuse: str = "") -> None:
        self.messages: list[EmailMessage] = []
        self.refuse = refuse
        super().__init__(("127.0.0.1", 0), MailConversation)

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class MailConversation(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.say("220 sink")
        while line := self.rfile.readline():
            verb = line.split()[0].upper() if line.split() else b""
            if verb == b"DATA":
                self.take()
            elif verb == b"QUIT":
                self.say("221 bye")
                return
            else:
                sink = cast(MailSink, self.server)
                self.say(sink.refuse if verb == b"RCPT" and sink.refuse else "250 sink")

    def take(self) -> None:
        self.say("354 go on")
        lines = []
        while (line := self.rfile.readline()) != b".\r\n":
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        message = message_from_bytes(b"".join(lines), policy=policy.default)
        cast(MailSink, self.server).messages.append(message)
        self.say("250 taken")

    def say(self, line: str) -> None:
        self.wfile.write(line.encode() + b"\r\n")
