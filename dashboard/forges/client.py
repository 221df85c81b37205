"""Requests to a forge's API: JSON there and back, and each way of failing as one of three exceptions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import SplitResult, urlencode, urljoin, urlsplit

from dashboard.forges.errors import ForgeAway, ForgeBusy, ForgeError, ForgeRefused
from dashboard.forges.json_fields import Fields
from dashboard.outgoing_http import (
    HttpAnswer,
    InternalAddressError,
    OutgoingError,
    WrongUrlError,
    parse_url,
    send_request,
)

# The setting by which an administrator allows internal addresses.
PERMISSION = "PACELINE_ALLOW_INTERNAL_FORGES"
# A page of a hundred changed files comes with their differences.
MOST_ANSWER_BYTES = 16 * 1024 * 1024
MOST_PAGES = 40
MOST_REDIRECTS = 2
USUAL_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=6)
# Smaller numbers are seconds from now, larger ones the time itself.
FIRST_STAMP = 10**9
LONGEST_REASON = 200

Query = Mapping[str, str | int]


@dataclass(frozen=True)
class Reply:
    """What a forge answered to a request that it granted."""

    value: Any
    # Whether a list goes on, and where, if the answer names it.
    has_next: bool = False
    next_url: str = ""


@dataclass
class Client:
    """`forge` is the name in sentences. `authorization` makes the headers that carry the secret; it may send
    requests of its own. `secrets` are kept out of sentences."""

    address: str
    forge: str
    authorization: Callable[[], Mapping[str, str]] = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def get_object(self, path: str, query: Query | None = None) -> Fields:
        return self._as_object(self.send("GET", path, query=query))

    def send_object(self, method: str, path: str, body: Mapping[str, Any]) -> Fields:
        return self._as_object(self.send(method, path, body=body))

    def get_pages(self, path: str, query: Query, most: int = MOST_PAGES) -> Iterator[Fields]:
        """Each object of a list, page by page, to the end or for `most` pages."""
        reply = self.send("GET", path, query=query)
        for page in range(2, most + 2):
            rows = reply.value.get("values") if isinstance(reply.value, dict) else reply.value
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise ForgeAway(f"{self.forge}'s answer can't be read: it must be a list of objects.")
            yield from (Fields(row) for row in rows)
            if not reply.has_next or page > most:
                return
            if reply.next_url:
                reply = self._send_to(self._own_url(reply.next_url), "GET", b"")
            else:
                reply = self.send("GET", path, query={**query, "page": page})

    def send(
        self, method: str, path: str, *, query: Query | None = None, body: Mapping[str, Any] | None = None
    ) -> Reply:
        """What a granted request is answered. Raises ForgeBusy, ForgeAway, ForgeRefused."""
        text = self.base_url().geturl().rstrip("/") + path + (f"?{urlencode(query)}" if query else "")
        return self._send_to(text, method, b"" if body is None else json.dumps(body).encode())

    def _send_to(self, text: str, method: str, data: bytes) -> Reply:
        for _ in range(MOST_REDIRECTS + 1):
            answer = self._exchange(urlsplit(text), method, data)
            if 300 <= answer.status < 400 and method == "GET":
                text = self._own_url(urljoin(text, answer.headers.get("location", "")))
                continue
            if not 200 <= answer.status < 300:
                raise self.refusal(answer)
            return self._read_answer(answer)
        raise ForgeAway(f"{self.forge} redirects without end.")

    def base_url(self) -> SplitResult:
        """Raises ForgeRefused for an address that no request may go to."""
        try:
            return parse_url(self.address, f"The address of {self.forge}'s API")
        except WrongUrlError as error:
            raise ForgeRefused(str(error)) from error

    def refusal(self, answer: HttpAnswer) -> ForgeBusy | ForgeAway | ForgeRefused:
        """The exception for an answer that grants nothing."""
        reason = self._reason(answer)
        until = busy_until(answer, reason, datetime.now(UTC))
        if until:
            return ForgeBusy(f"{self.forge} limits requests until {until:%Y-%m-%d %H:%M:%S} UTC.", until)
        answered = f"{self.forge} answered {answer.status}" + (f": {reason.rstrip('.')}." if reason else ".")
        if answer.status >= 500:
            return ForgeAway(answered)
        return ForgeRefused(f"{answered}{ADVICE.get(answer.status, '')}", answer.status)

    def hide_secrets(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "…") if secret else text
        return text

    def _exchange(self, url: SplitResult, method: str, data: bytes) -> HttpAnswer:
        headers = {
            "User-Agent": "Paceline",
            "Accept": "application/json",
            **({"Content-Type": "application/json"} if data else {}),
            **self.headers,
            **self.authorization(),
        }
        try:
            return send_request(
                url, method, data, headers, permission=PERMISSION, most_bytes=MOST_ANSWER_BYTES
            )
        except InternalAddressError as error:
            raise ForgeRefused(str(error)) from error
        except OutgoingError as error:
            raise ForgeAway(self.hide_secrets(str(error))) from error

    def _own_url(self, target: str) -> str:
        """Where a GET goes on: on the API's host alone, since the secret goes with it."""
        base, parts = self.base_url(), urlsplit(target)
        if (parts.scheme, parts.netloc) != (base.scheme, base.netloc):
            raise ForgeRefused(f"{self.forge} answered with the address of another place.")
        return target

    def _read_answer(self, answer: HttpAnswer) -> Reply:
        if not answer.body:
            return Reply(None)
        try:
            value = json.loads(answer.body)
        except (ValueError, RecursionError):
            raise ForgeAway(f"{self.forge}'s answer can't be read: it isn't JSON.") from None
        linked = re.search(r'rel="?next"?', answer.headers.get("link", "")) is not None
        named = str(value.get("next") or "") if isinstance(value, dict) else ""
        return Reply(value, linked or bool(named), named)

    def _as_object(self, reply: Reply) -> Fields:
        if not isinstance(reply.value, dict):
            raise ForgeAway(f"{self.forge}'s answer can't be read: it must be an object.")
        return Fields(reply.value)

    def _reason(self, answer: HttpAnswer) -> str:
        """What the forge says of it, on one line."""
        try:
            body = json.loads(answer.body)
        except (ValueError, RecursionError):
            return ""
        value = body.get("message") or body.get("error") if isinstance(body, dict) else None
        if isinstance(value, dict):
            value = value.get("message") or json.dumps(value)
        text = " ".join(str(value or "").split())
        return self.hide_secrets("".join(sign for sign in text if sign.isprintable()))[:LONGEST_REASON]


ADVICE = {
    401: " Its token is wrong or has ended: run connect_forge again.",
    403: " Its token lacks a right: docs/forges.md lists them.",
    404: " The repository's name is wrong, or the token may not see it.",
}


def busy_until(answer: HttpAnswer, reason: str, now: datetime) -> datetime | None:
    """When a forge that limits requests may be asked again; None where it doesn't limit them."""
    limited = answer.headers.get("x-ratelimit-remaining") == "0" or "retry-after" in answer.headers
    if answer.status == 403 and not limited and "rate limit" not in reason.lower():
        return None
    # A site that is away for maintenance says when it will be back.
    back = answer.status == 503 and "retry-after" in answer.headers
    if answer.status not in (403, 429) and not back:
        return None
    for name in ("retry-after", "x-ratelimit-reset", "ratelimit-reset"):
        if until := parse_time(answer.headers.get(name, ""), now):
            return min(max(until, now + timedelta(seconds=1)), now + LONGEST_PAUSE)
    return now + USUAL_PAUSE


def parse_time(text: str, now: datetime) -> datetime | None:
    """Seconds from now, Unix seconds or a date of HTTP."""
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) <= 11:
        seconds = int(text)
        return (
            datetime.fromtimestamp(seconds, UTC)
            if seconds >= FIRST_STAMP
            else now + timedelta(seconds=seconds)
        )
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


@contextmanager
def readable_answers(forge: str) -> Iterator[None]:
    """A field of an answer that isn't as it should be makes the answer unreadable."""
    try:
        yield
    except ForgeError as error:
        raise ForgeAway(f"{forge}'s answer can't be read: {error}") from error
