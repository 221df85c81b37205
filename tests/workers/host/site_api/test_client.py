"""What a host makes of answers that no site gives, and of those that it can't act on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from workers.host.errors import HostOutdated, LeaseLost, SiteAway, SiteBroken, TokenRefused
from workers.host.site_api.client import SiteClient


class Answering(BaseHTTPRequestHandler):
    """Answers each request as the test says, and keeps what came."""

    status, body, location = 200, b"{}", ""
    seen: list[tuple[str, str | None]]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, self.headers["Authorization"]))
        self.send_response(self.status)
        if self.location:
            self.send_header("Location", self.location)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""


@pytest.fixture
def site() -> Iterator[tuple[type[Answering], SiteClient]]:
    answering = type("Answers", (Answering,), {"seen": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), answering)
    thread = threading.Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    yield answering, SiteClient(f"http://127.0.0.1:{server.server_port}", "host_secret")
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (401, TokenRefused),
        (409, LeaseLost),
        (426, HostOutdated),
        (400, SiteBroken),
        (500, SiteBroken),
        (502, SiteAway),
        (404, SiteBroken),
        (413, SiteBroken),
        (429, SiteAway),
    ],
)
def test_each_refusal_has_its_meaning_and_the_sites_sentence(
    site: tuple[type[Answering], SiteClient], status: int, failure: type[Exception]
) -> None:
    answering, client = site
    answering.status, answering.body = status, b'{"detail": "Because."}'
    with pytest.raises(failure, match="Because"):
        client.heartbeat()


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b'{"state": 7}', b"{}"])
def test_what_is_no_answer_of_a_site_is_an_outage(
    site: tuple[type[Answering], SiteClient], body: bytes
) -> None:
    answering, client = site
    answering.body = body
    with pytest.raises(SiteAway):
        client.heartbeat()


def test_the_token_goes_nowhere_else(site: tuple[type[Answering], SiteClient]) -> None:
    answering, client = site
    answering.status, answering.location = 302, f"{client.site}/elsewhere"
    with pytest.raises(SiteAway, match="give that address as --site"):
        client.heartbeat()
    assert answering.seen == [("/api/v1/host/heartbeat", "Bearer host_secret")]
