"""One request to a receiver outside: to a public address alone, within a time, its answer's size bounded."""

from __future__ import annotations

import http.client
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult

from dashboard.alerts.errors import DeliveryError, PermanentDeliveryError
from dashboard.outgoing_http import (
    InternalAddressError,
    OutgoingError,
    WrongUrlError,
    parse_url,
    port_of,
    resolve_public_address,
    send_request,
)

# The setting by which an administrator allows internal addresses.
PERMISSION = "PACELINE_ALLOW_INTERNAL_WEBHOOKS"
# Of a service's answer so much is read for the sentence that says what is wrong.
MOST_ANSWER_BYTES = 4096
MOST_REASON_LETTERS = 200
# Asking again changes nothing: the message, the secret or the place is refused.
FINAL_STATUSES = frozenset({400, 401, 403, 404, 405, 410, 413, 415})


@dataclass(frozen=True, slots=True)
class DeliveryAnswer:
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
        return parse_url(address, "The webhook's URL")
    except WrongUrlError as error:
        raise PermanentDeliveryError(str(error)) from error


def check_webhook_host(url: SplitResult) -> None:
    """Raises DeliveryError where the host isn't found, PermanentDeliveryError where it mustn't be reached."""
    with delivery_errors():
        resolve_public_address(url.hostname or "", port_of(url), PERMISSION)


@contextmanager
def delivery_errors() -> Iterator[None]:
    """What keeps a request from its receiver, as a reason for the delivery log."""
    try:
        yield
    except InternalAddressError as error:
        raise PermanentDeliveryError(str(error)) from error
    except OutgoingError as error:
        raise DeliveryError(str(error)) from error


def post_to_service(
    url: SplitResult,
    message: Mapping[str, Any],
    read_reason: Callable[[str], str],
    *,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
) -> DeliveryAnswer:
    """Send JSON to a service; `read_reason` finds the reason for a refusal in its answer.

    Raises DeliveryError, with the wait that the service asked for, or PermanentDeliveryError.
    """
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    kind = {"Content-Type": "application/json", "User-Agent": "Paceline", **(headers or {})}
    answer = exchange_request(url, body, kind, method=method, read=True)
    if not answer.is_taken:
        refuse_answer(url, answer, read_reason(answer.text))
    return answer


def refuse_answer(url: SplitResult, answer: DeliveryAnswer, reason: str = "", *, final: bool = True) -> None:
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
        except (ValueError, RecursionError):
            return ""
        if not isinstance(answer, dict):
            return ""
        if isinstance(answer.get("error"), dict):
            answer = answer["error"]
        return ": ".join(value for name in names if isinstance(value := answer.get(name), str) and value)

    return read_reason


def exchange_request(
    url: SplitResult, body: bytes, headers: Mapping[str, str], *, method: str = "POST", read: bool = False
) -> DeliveryAnswer:
    """The answer. Its body isn't read unless `read`: nobody looks at it, and it may be endless."""
    most = MOST_ANSWER_BYTES if read else 0
    with delivery_errors():
        answer = send_request(url, method, body, headers, permission=PERMISSION, most_bytes=most, whole=False)
    wait = parse_retry_after(answer.headers.get("retry-after"))
    return DeliveryAnswer(answer.status, answer.body.decode("utf-8", "replace"), wait)


def parse_retry_after(text: str | None) -> float | None:
    """The seconds of a Retry-After header; its other form, a date, is not used by any of the services."""
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
