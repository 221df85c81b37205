"""A forge of a few lines on a real socket: it takes what the published descriptions allow, nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import jsonschema

from tests.dashboard.alerts.sinks import serve_in_thread
from tests.dashboard.forges.payloads import GOLDEN

TOKEN = "a-token-of-the-forge"
# What a request must carry to be let in.
AUTHORIZATIONS = {
    "github": ("Authorization", f"Bearer {TOKEN}"),
    "gitlab": ("PRIVATE-TOKEN", TOKEN),
    "gitea": ("Authorization", f"token {TOKEN}"),
    "bitbucket": ("Authorization", f"Bearer {TOKEN}"),
}


@dataclass(frozen=True)
class Sent:
    """A request that was right: the description's name for it, and what filled its places."""

    name: str
    places: dict[str, str]
    query: dict[str, str]
    body: Any
    headers: Mapping[str, str]


@dataclass
class Forced:
    """An answer that comes whatever was asked."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"{}"


@dataclass
class StandIn:
    """`responses` has, by the name of a request, the JSON of its answer or what makes it; a list is told in
    pages of `page_size`. `forced` answers are given first."""

    kind: str
    responses: dict[str, Any] = field(default_factory=dict)
    forced: list[Forced] = field(default_factory=list)
    page_size: int = 100
    requests: list[Sent] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    authorization: tuple[str, str] | None = None
    url: str = ""

    def __post_init__(self) -> None:
        self.description = json.loads((GOLDEN / self.kind / "api.json").read_text())

    @property
    def api_address(self) -> str:
        return self.url + str(self.description["prefix"])

    @property
    def last(self) -> Sent:
        return self.requests[-1]

    def named(self, method: str, path: str) -> tuple[str, dict[str, str]] | None:
        """The description's request that a path is, and what fills its places."""
        for name in self.description["requests"]:
            wanted, _, template = name.partition(" ")
            pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(template))
            if wanted == method and (found := re.fullmatch(pattern, path)):
                return name, {key: unquote(value) for key, value in found.groupdict().items()}
        return None

    def check_request(self, method: str, target: str, body: bytes, headers: Mapping[str, str]) -> Sent | str:
        """The request, or what is wrong with it."""
        parts = urlsplit(target)
        prefix = self.description["prefix"]
        found = self.named(method, parts.path.removeprefix(prefix))
        if found is None or not parts.path.startswith(prefix):
            return f"{method} {parts.path} isn't described"
        name, places = found
        described = self.description["requests"][name]
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        allowed = {*described["query"], *self.description.get("common_query", [])}
        if not set(query) <= allowed:
            return f"{name} has no {set(query) - allowed}"
        content = json.loads(body) if body else None
        if (content is None) != ("body" not in described):
            return f"{name} has a body, or none, against its description"
        if content is not None:
            strict = {**described["body"], "additionalProperties": False}
            for error in jsonschema.Draft202012Validator(strict).iter_errors(content):
                return f"{name}: {error.message}"
        return Sent(name, places, query, content, headers)

    def answer_request(
        self, method: str, target: str, body: bytes, headers: Mapping[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        if self.forced:
            forced = self.forced.pop(0)
            return forced.status, forced.headers, forced.body
        header, value = self.authorization or AUTHORIZATIONS[self.kind]
        if headers.get(header) != value:
            return 401, {}, b'{"message": "Bad credentials"}'
        sent = self.check_request(method, target, body, headers)
        if isinstance(sent, str):
            self.problems.append(sent)
            return 422, {}, json.dumps({"message": sent}).encode()
        self.requests.append(sent)
        known = self.responses.get(sent.name)
        if known is None:
            return 404, {}, b'{"message": "Not Found"}'
        value = known(sent) if callable(known) else known
        if isinstance(value, Forced):
            return value.status, value.headers, value.body
        status = int(self.description["requests"][sent.name]["status"])
        value, more = self.page_of(value, int(sent.query.get("page", 1)), target)
        links = {"Link": f'<{self.url}{target}>; rel="next"'} if more and self.kind != "bitbucket" else {}
        return status, links, json.dumps(value).encode()

    def page_of(self, value: Any, page: int, target: str) -> tuple[Any, bool]:
        if not isinstance(value, list):
            return value, False
        part = value[(page - 1) * self.page_size : page * self.page_size]
        more = len(value) > page * self.page_size
        if self.kind == "bitbucket":
            following = f"{self.url}{urlsplit(target).path}?page={page + 1}"
            return {"values": part, **({"next": following} if more else {})}, more
        return part, more

    @contextmanager
    def open(self) -> Iterator[StandIn]:
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                answer = stand_in.answer_request(self.command, self.path, body, dict(self.headers))
                status, headers, content = answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_PATCH = answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Silent: tests read the requests."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_port}"
        with serve_in_thread(server):
            yield self
