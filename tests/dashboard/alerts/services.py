"""Stand-ins for the services: each checks what it gets against what the service documents, and answers so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema

from tests.dashboard.alerts.sinks import serve_in_thread

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "channels"
PAGERDUTY_KEY = "0123456789abcdef0123456789abcdef"
# Kind: (path of its requests, answer to a good one, answer to a bad one).
SERVICES: dict[str, tuple[str, tuple[int, str], tuple[int, str]]] = {
    "slack": ("/services/T0/B0/key", (200, "ok"), (400, "invalid_payload")),
    "discord": ("/api/webhooks/1/key", (204, ""), (400, '{"message": "Invalid Form Body", "code": 50035}')),
    "teams": ("/workflows/1/invoke?sig=key", (202, ""), (400, '{"error": {"code": "InvalidCard"}}')),
    "mattermost": ("/hooks/key", (200, "ok"), (400, '{"message": "Invalid webhook payload."}')),
    "matrix": (
        "/_matrix/client/v3/rooms/%21room%3Aexample.org/send/m.room.message/",
        (200, '{"event_id": "$1"}'),
        (400, '{"errcode": "M_BAD_JSON", "error": "Not a message"}'),
    ),
    "pagerduty": (
        "/v2/enqueue",
        (202, '{"status": "success", "message": "Event processed"}'),
        (400, '{"status": "invalid event", "message": "Event object is invalid"}'),
    ),
}


@dataclass
class ServiceStandIn:
    """Answers with the next of `answers` (status, body, headers), and as the service does without any."""

    kind: str
    answers: list[tuple[int, str, dict[str, str]]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    url: str = ""

    def answer_request(
        self, path: str, headers: dict[str, str], raw: bytes
    ) -> tuple[int, str, dict[str, str]]:
        body = json.loads(raw)
        self.paths.append(path)
        self.headers.append(headers)
        self.bodies.append(body)
        where, good, bad = SERVICES[self.kind]
        self.complaints += find_complaints(self.kind, body)
        if not path.startswith(where):
            self.complaints.append(f"the path {path}")
        if self.answers:
            return self.answers.pop(0)
        return (*(bad if self.complaints else good), {})

    @contextmanager
    def open(self) -> Iterator[ServiceStandIn]:
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                status, text, headers = stand_in.answer_request(self.path, dict(self.headers), raw)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if status != 204:
                    self.wfile.write(text.encode())

            do_PUT = do_POST  # noqa: N815 - as http.server asks

            def log_message(self, *args: object) -> None:
                """Silent: tests read the requests."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_port}"
        with serve_in_thread(server):
            yield self

    @property
    def channel_fields(self) -> dict[str, str]:
        """The columns of a channel that leads here."""
        if self.kind == "matrix":
            return {"address": f"{self.url}/!room:example.org", "secret": "a token"}
        if self.kind == "pagerduty":
            return {"address": f"{self.url}/v2/enqueue#1", "secret": PAGERDUTY_KEY}
        return {"address": f"{self.url}/#1", "secret": self.url + SERVICES[self.kind][0]}


def find_complaints(kind: str, body: dict[str, Any]) -> list[str]:
    schema = json.loads((GOLDEN / f"{kind}.json").read_text())
    complaints = [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(body)]
    size = len(json.dumps(body, ensure_ascii=False).encode())
    if size > schema.get("x-bytes", size):
        complaints.append(f"{size} bytes")
    letters = sum(len(text) for text in shown_texts(body))
    if letters > schema.get("x-total", letters):
        complaints.append(f"{letters} letters")
    return complaints


def shown_texts(value: Any) -> Iterator[str]:
    """All texts of a body but addresses: more than what a service counts."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name not in ("url", "image"):
                yield from shown_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from shown_texts(item)
    elif isinstance(value, str):
        yield value
