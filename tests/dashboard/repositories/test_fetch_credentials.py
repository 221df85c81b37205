"""The password of a repository goes to its host alone, and stands in no command line."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from dashboard import repositories
from dashboard.repositories import Unreachable, git
from dashboard.repositories.child import ChildResult, run_child
from tests.dashboard.certificates import create_certificate, server_context


@pytest.fixture
def forge() -> Iterator[tuple[int, list[str]]]:
    """A host that knows no repository: its port, and what it was sent as Authorization."""
    sent: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent.append(self.headers.get("Authorization", ""))
            self.send_error(404)

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    yield server.server_port, sent
    server.shutdown()
    server.server_close()
    thread.join()


def test_they_are_sent_as_a_header_and_stand_in_no_arguments(
    forge: tuple[int, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, sent = forge
    commands: list[list[str]] = []

    def noted(command: list[str], **more: Any) -> ChildResult:
        commands.append(command)
        return run_child(command, **more)

    monkeypatch.setattr(git, "run_child", noted)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    mirror = repositories.locate_mirror(tmp_path, "mine", f"http://ann:p%40ss@127.0.0.1:{port}/x.git", "main")
    with pytest.raises(Unreachable) as refused:
        mirror.fetch()
    assert set(sent) == {"Basic " + base64.b64encode(b"ann:p@ss").decode()}
    assert commands
    assert not [word for command in commands for word in command if "p%40ss" in word or "p@ss" in word]
    assert "p%40ss" not in str(refused.value)


def test_no_https_address_leads_git_to_plain_http(
    forge: tuple[int, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who answers there could have it ask services of this network that ask nobody who they are."""
    port, sent = forge
    certificate = create_certificate(tmp_path / "localhost.pem")

    class Redirecting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", f"http://127.0.0.1:{port}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    monkeypatch.setenv("GIT_SSL_CAINFO", str(certificate))
    server = HTTPServer(("127.0.0.1", 0), Redirecting)
    server.socket = server_context(certificate).wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    address = f"https://localhost:{server.server_port}/x.git"
    mirror = repositories.locate_mirror(tmp_path, "mine", address, "main")
    try:
        for ask in (mirror.fetch, mirror.remote_tip):
            with pytest.raises(Unreachable, match=r'Protocol "?http'):
                ask()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert sent == []


def test_an_account_may_have_git_ask_a_plain_cache_instead(
    forge: tuple[int, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, sent = forge
    (tmp_path / ".gitconfig").write_text(
        f'[url "http://127.0.0.1:{port}/"]\n\tinsteadOf = https://example.org/\n'
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    mirror = repositories.locate_mirror(tmp_path, "mine", "https://example.org/x.git", "main")
    for ask in (mirror.fetch, mirror.remote_tip):
        with pytest.raises(Unreachable):
            ask()
    assert len(sent) == 2
